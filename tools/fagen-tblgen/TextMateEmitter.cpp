// fagen: writes editors/*.tmLanguage.json: the words of specs (.fa) and of IR (.fair) for editors that colour text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "EmitterSupport.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/TableGen/TableGenBackend.h"

using namespace llvm;

namespace fagen::tblgen::textMateEmitter {
namespace {

/// Each word once, in the order in which they come.
class Words {
public:
  void add(StringRef word) {
    if (known.insert(word).second)
      words.push_back(word.str());
  }
  /// A regular expression of exactly these words.
  std::string pattern() const { return "\\b(" + join(words, "|") + ")\\b"; }

private:
  StringSet<> known;
  std::vector<std::string> words;
};

json::Object match(StringRef scope, std::string pattern) {
  return json::Object{{"name", scope}, {"match", std::move(pattern)}};
}

json::Object captured(StringRef first, StringRef second, std::string pattern) {
  return json::Object{
      {"captures", json::Object{{"1", json::Object{{"name", first}}}, {"2", json::Object{{"name", second}}}}},
      {"match", std::move(pattern)}};
}

std::string keysPattern(const RecordKeeper &records) {
  Words keys;
  for (const Record *option : recordsInOrder(records, "Option"))
    keys.add(option->getValueAsString("Key"));
  return keys.pattern() + "(?=\\s*=(?!=))";
}

std::string valuesPattern(const RecordKeeper &records) {
  Words values;
  for (const Record *value : recordsInOrder(records, "Value"))
    values.add(value->getValueAsDef("TheCase")->getValueAsString("Text"));
  for (StringRef word : {"on", "off", "auto"})
    values.add(word);
  return values.pattern();
}

std::string targetsPattern(const RecordKeeper &records) {
  Words targets;
  for (const Record *target : recordsInOrder(records, "Target"))
    targets.add(target->getValueAsString("Name"));
  return targets.pattern();
}

void printGrammar(raw_ostream &os, StringRef source, StringRef name, StringRef fileType, json::Array patterns) {
  json::Object grammar{{"$comment", "Generated from " + source.str() + " by fagen-tblgen. Do not edit."},
                       {"name", name},
                       {"scopeName", "source." + name.str()},
                       {"fileTypes", json::Array{fileType}},
                       {"patterns", std::move(patterns)}};
  os << formatv("{0:2}\n", json::Value(std::move(grammar)));
}

/// What the grammar of docs/Language.md has, then the words of the tables. The first pattern that matches counts.
void emitTextMate(RecordKeeper &records, raw_ostream &os) {
  json::Array patterns;
  patterns.push_back(match("comment.line.double-slash.fagen", "//.*$"));
  patterns.push_back(json::Object{{"name", "comment.block.fagen"}, {"begin", "/\\*"}, {"end", "\\*/"}});
  patterns.push_back(match("variable.parameter.key.fagen", keysPattern(records)));
  patterns.push_back(
      captured("keyword.declaration.fagen", "entity.name.type.fagen", "\\b(kernel|schedule|form)\\s+(\\w+)"));
  // Of forms. mask is a key, too.
  patterns.push_back(captured("keyword.declaration.fagen", "variable.parameter.fagen", "\\b(param|let)\\s+(\\w+)"));
  patterns.push_back(match("keyword.declaration.fagen", "\\b(score|sink|v_scale)(?=\\s*=(?!=))"));
  patterns.push_back(match("keyword.control.fagen", "\\bascending\\b|\\bin(?=\\s*\\[)"));
  patterns.push_back(match("support.type.fagen", "(?<=:\\s)(bit|u8|i32|f16|bf16|f32)\\b"));
  patterns.push_back(
      match("keyword.declaration.fagen", "\\b(target|form|kernel|problem|schedule|select|claim|require)\\b"));
  patterns.push_back(match("keyword.control.fagen", "\\b(when|otherwise)\\b"));
  patterns.push_back(match("support.function.fagen",
                           "\\b(tune|ceil_div|floor_div|floor_mod|min|max|abs|clamp|f32|i32|exp2?|log2?|sqrt|"
                           "tanh)(?=\\s*\\()"));
  patterns.push_back(match("support.constant.target.fagen", targetsPattern(records)));
  patterns.push_back(match("constant.language.fagen", valuesPattern(records)));
  patterns.push_back(
      captured("constant.numeric.fagen", "keyword.other.unit.fagen", "\\b(\\d+(?:\\.\\d+)?)(?:\\s*(KiB|B)\\b)?"));
  patterns.push_back(
      match("keyword.operator.fagen", "==|!=|<=|>=|&&|\\|\\||<<|>>|[-+*/%<>!=&|^?]|(?<=[\\s\\d])x(?=[\\s\\d])"));
  printGrammar(os, "SpecOptions.td and Targets.td", "fagen", "fa", std::move(patterns));
}

/// The attributes of all ops; a name stands before `=`.
std::string attributesPattern(const RecordKeeper &records) {
  Words names;
  for (const Record *op : recordsInOrder(records, "Op"))
    for (const Record *attribute : op->getValueAsListOfDefs("Attributes"))
      names.add(attribute->getValueAsString("Name"));
  return names.pattern() + "(?=\\s*=(?!=))";
}

/// What docs/internals/Design.md has of the text of IR, then the ops and attributes of the table.
void emitTextMateIr(RecordKeeper &records, raw_ostream &os) {
  Words ops;
  for (const Record *op : recordsInOrder(records, "Op"))
    ops.add(op->getValueAsString("Name"));
  json::Array patterns;
  patterns.push_back(match("comment.line.double-slash.fair", "//.*$"));
  patterns.push_back(match("string.quoted.double.fair", "\"(?:\\\\.|[^\"\\\\])*\""));
  patterns.push_back(match("entity.name.type.fair", "@\\w+"));
  patterns.push_back(match("variable.other.buffer.fair", "%\\w+"));
  patterns.push_back(
      match("keyword.declaration.fair", "^\\s*(program|kernel|const|global|shared|fragment|let|site|role)\\b"));
  patterns.push_back(match("keyword.control.fair", "^\\s*(\\}\\s*else|loop|if)\\b|\\bto\\b"));
  patterns.push_back(match("variable.parameter.attribute.fair", attributesPattern(records)));
  patterns.push_back(match("support.function.op.fair", "^\\s*" + ops.pattern()));
  patterns.push_back(match("constant.language.fair", "\\b(f16|bf16|f32|e4m3|none|inf)\\b"));
  patterns.push_back(match("constant.numeric.fair", "\\b\\d+(?:\\.\\d+)?(?:e[-+]?\\d+)?\\b"));
  patterns.push_back(match("variable.other.constant.fair", "\\bk[A-Z]\\w*"));
  printGrammar(os, "Ops.td", "fair", "fair", std::move(patterns));
}

TableGen::Emitter::Opt registration("gen-textmate", emitTextMate, "editors/fagen.tmLanguage.json");
TableGen::Emitter::Opt registrationIr("gen-textmate-ir", emitTextMateIr, "editors/fair.tmLanguage.json");

} // namespace
} // namespace fagen::tblgen::textMateEmitter

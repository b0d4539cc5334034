// fagen: what an editor shows at a place of a spec: the words that may stand there, and what a word means.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "SpecHelp.h"

#include "fagen/Parse/Lexer.h"
#include "fagen/Spec/Options.h"
#include "fagen/Target/Target.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace fagen {

namespace {

/// Where an offset is.
struct Context {
  std::vector<StringRef> blocks; ///< words that began the blocks around it, the outermost first
  std::vector<StringRef> before; ///< tokens of its statement, up to the word at the offset
  StringRef word;                ///< at the offset, or just before it; may be empty

  /// The innermost block; a `when` is part of the one around it.
  StringRef block() const {
    for (StringRef name : reverse(blocks))
      if (name != "when")
        return name;
    return "";
  }
  /// The key whose value is written here, or empty.
  StringRef key() const { return before.size() > 1 && before[1] == "=" ? before[0] : StringRef(); }
};

} // namespace

static Context contextAt(StringRef text, size_t offset) {
  SourceMgr sources;
  sources.AddNewSourceBuffer(MemoryBuffer::getMemBuffer(text, "", /*RequiresNullTerminator=*/false), SMLoc());
  Diagnostics silent(sources, nulls());
  Lexer lexer(text, silent);
  Context context;
  for (Token token = lexer.next(); token.kind != Token::End; token = lexer.next()) {
    const size_t begin = token.text.begin() - text.begin(), end = begin + token.text.size();
    if (begin > offset || (begin == offset && token.kind != Token::Word))
      break;
    if (token.kind == Token::Word && offset <= end) {
      context.word = token.text;
      break;
    }
    if (token.is("{"))
      context.blocks.push_back(context.before.empty() ? StringRef() : context.before.front());
    if (token.is("}") && !context.blocks.empty())
      context.blocks.pop_back();
    if (token.is("{") || token.is("}") || token.is(";"))
      context.before.clear();
    else
      context.before.push_back(token.text);
  }
  return context;
}

/// The key in the block, or null.
static const OptionInfo *optionIn(StringRef block, StringRef name) {
  if (block == "problem")
    return findOption(OptionBlock::Problem, name);
  return block == "schedule" ? findOption(OptionBlock::Schedule, name) : nullptr;
}

static std::vector<SuggestedWord> valuesOf(const OptionInfo &option) {
  std::vector<SuggestedWord> words;
  for (const OptionValueInfo &value : option.values)
    if (!value.notYet)
      words.push_back({value.text.str(), value.doc.str()});
  if (option.type == OptionType::Switch)
    words = {{"on", ""}, {"off", ""}};
  return words;
}

static std::vector<SuggestedWord> keysOf(OptionBlock block) {
  std::vector<SuggestedWord> words;
  for (const OptionInfo &option : allOptions())
    if (option.block == block)
      words.push_back({option.name.str(), option.doc.str()});
  return words;
}

static std::vector<SuggestedWord> targets() {
  std::vector<SuggestedWord> words;
  for (const TargetInfo &target : allTargets())
    words.push_back({target.name.str(), (Twine(target.sharedPerBlock) + " B of shared memory a CTA").str()});
  return words;
}

std::vector<SuggestedWord> wordsAt(StringRef text, size_t offset) {
  const Context context = contextAt(text, offset);
  const StringRef block = context.block();
  if (const OptionInfo *option = optionIn(block, context.key()))
    return valuesOf(*option);
  if (!context.before.empty())
    return context.before.front() == "target" ? targets() : std::vector<SuggestedWord>();
  if (block == "problem")
    return keysOf(OptionBlock::Problem);
  if (block == "schedule") {
    std::vector<SuggestedWord> words = keysOf(OptionBlock::Schedule);
    words.push_back({"when", "settings for some problems only"});
    return words;
  }
  if (block == "select")
    return {{"when", "a schedule for some problems, at run time"},
            {"otherwise", "the schedule for all others"},
            {"least", "time or joules: what values of a tuner are chosen by"}};
  if (block == "kernel")
    return {{"problem", "what is computed"},
            {"schedule", "how it is computed"},
            {"select", "which schedule when, at run time"},
            {"claim", "problems that the kernel was made for"},
            {"require", "gates"}};
  if (block == "form")
    return {{"param", "a number or a tensor that the caller gives"},
            {"let", "a name for a value"},
            {"score", "what takes the place of the score s"},
            {"mask", "whether the query sees the key"},
            {"sink", "a score without a key that joins the sum of a row"},
            {"v_scale", "what V is multiplied by"}};
  if (block.empty())
    return {{"target", "GPUs that every kernel is built for"},
            {"form", "how scores change, and which keys a query sees"},
            {"kernel", "a problem and its schedules"}};
  return {};
}

static std::string meaningOf(const OptionInfo &option) {
  std::string text = ("**" + option.name + "**: " + option.doc + ".").str();
  if (!option.defaultText.empty())
    text += (" Default: `" + option.defaultText + "`.").str();
  for (const OptionValueInfo &value : option.values)
    text += ("\n- `" + value.text + "`: " + value.doc + (value.notYet ? "; not yet" : "")).str();
  return text;
}

std::string meaningAt(StringRef text, size_t offset) {
  const Context context = contextAt(text, offset);
  if (context.word.empty())
    return "";
  if (const OptionInfo *option = optionIn(context.block(), context.key())) {
    const OptionValueInfo *value = option->findValue(context.word);
    return value ? ("`" + option->name + " = " + value->text + "`: " + value->doc + ".").str() : "";
  }
  if (const OptionInfo *option = optionIn(context.block(), context.word); option && context.before.empty())
    return meaningOf(*option);
  if (const TargetInfo *target = lookupTarget(context.word))
    return ("**" + target->name + "**: " + Twine(target->sharedPerBlock) + " B of shared memory a CTA, " +
            Twine(target->maxRegistersPerThread) + " registers a thread, " + Twine(target->maxWarpsPerSm) +
            " warps an SM.")
        .str();
  return "";
}

} // namespace fagen

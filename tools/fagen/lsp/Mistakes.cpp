// fagen: the mistakes of a spec, as the language server protocol has them, and what mends them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Mistakes.h"

#include "fagen/Lower/Lower.h"
#include "fagen/Spec/Analyze.h"
#include "fagen/Support/Diagnostics.h"
#include "fagen/Support/Json.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace fagen {

static constexpr int kErrorSeverity = 1, kWarningSeverity = 2, kInformationSeverity = 3;

std::vector<json::Object> mistakesIn(StringRef text) {
  SourceMgr sources;
  const unsigned id = sources.AddNewSourceBuffer(MemoryBuffer::getMemBufferCopy(text, "spec.fa"), SMLoc());
  std::string lines;
  raw_string_ostream os(lines);
  Diagnostics diags(sources, os);
  diags.setFormat(DiagnosticsFormat::Json);
  Lowering lowering;
  analyzeSpec(sources, id, diags, {{}, &lowering});
  diags.finish();
  std::vector<json::Object> found;
  for (StringRef line : split(StringRef(lines).trim(), '\n'))
    if (Expected<json::Value> value = parseJson(line))
      found.push_back(std::move(*value->getAsObject()));
    else
      consumeError(value.takeError());
  return found;
}

static json::Object place(int64_t line, int64_t column) {
  return json::Object{{"line", line - 1}, {"character", column - 1}};
}

json::Object rangeOf(const json::Object &mistake) {
  const int64_t line = mistake.getInteger("line").value_or(1), column = mistake.getInteger("column").value_or(1);
  return json::Object{
      {"start", place(line, column)},
      {"end", place(mistake.getInteger("endLine").value_or(line), mistake.getInteger("endColumn").value_or(column))}};
}

json::Object diagnosticOf(const json::Object &mistake) {
  std::string message = mistake.getString("message").value_or("").str();
  if (const json::Array *notes = mistake.getArray("notes"))
    for (const json::Value &note : *notes)
      message += ("\nnote: " + note.getAsObject()->getString("message").value_or("")).str();
  const StringRef severity = mistake.getString("severity").value_or("");
  return json::Object{{"range", rangeOf(mistake)},
                      {"severity", severity == "error"     ? kErrorSeverity
                                   : severity == "warning" ? kWarningSeverity
                                                           : kInformationSeverity},
                      {"source", "fagen"},
                      {"message", std::move(message)}};
}

/// The word that a message asks for: "unknown key 'wraps'; did you mean 'warps'?" is of the wrong word's place.
static StringRef wordMeantBy(const json::Object &mistake) {
  const StringRef message = mistake.getString("message").value_or("");
  return message.ends_with("'?") ? message.drop_back(2).rsplit("did you mean '").second : StringRef();
}

static json::Object action(const json::Object &mistake, StringRef uri, json::Object range, StringRef text) {
  json::Object edit{{"range", std::move(range)}, {"newText", text.str()}};
  json::Object changes{{uri.str(), json::Array{std::move(edit)}}};
  return json::Object{{"title", ("write '" + text + "'").str()},
                      {"kind", "quickfix"},
                      {"isPreferred", true},
                      {"diagnostics", json::Array{diagnosticOf(mistake)}},
                      {"edit", json::Object{{"changes", std::move(changes)}}}};
}

json::Array quickFixesOf(const json::Object &mistake, StringRef uri) {
  json::Array actions;
  if (const json::Array *fixes = mistake.getArray("fixes"))
    for (const json::Value &fix : *fixes)
      actions.push_back(
          action(mistake, uri, rangeOf(*fix.getAsObject()), fix.getAsObject()->getString("text").value_or("")));
  else if (const StringRef word = wordMeantBy(mistake); !word.empty() && mistake.getInteger("endColumn"))
    actions.push_back(action(mistake, uri, rangeOf(mistake), word));
  return actions;
}

} // namespace fagen

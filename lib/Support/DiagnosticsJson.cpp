// fagen: errors, warnings and notes as JSON, an object a line.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Support/Diagnostics.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace fagen {

static StringRef nameOf(SourceMgr::DiagKind kind) {
  switch (kind) {
  case SourceMgr::DK_Error:
    return "error";
  case SourceMgr::DK_Warning:
    return "warning";
  case SourceMgr::DK_Remark:
    return "remark";
  case SourceMgr::DK_Note:
    return "note";
  }
  llvm_unreachable("a kind that SourceMgr does not have");
}

/// Sets the file, and lines and columns from 1; the end is the first column after. Nothing without a buffer.
static void addPlace(json::Object &object, const SourceMgr &sources, SMRange range) {
  const unsigned buffer = range.Start.isValid() ? sources.FindBufferContainingLoc(range.Start) : 0;
  if (buffer == 0)
    return;
  object["file"] = json::fixUTF8(sources.getMemoryBuffer(buffer)->getBufferIdentifier());
  auto [line, column] = sources.getLineAndColumn(range.Start, buffer);
  object["line"] = line;
  object["column"] = column;
  if (range.End == range.Start || !range.End.isValid())
    return;
  auto [endLine, endColumn] = sources.getLineAndColumn(range.End, buffer);
  object["endLine"] = endLine;
  object["endColumn"] = endColumn;
}

json::Object Diagnostics::toJson(const Message &message) const {
  json::Object object{{"severity", nameOf(message.kind)}, {"message", json::fixUTF8(message.text)}};
  const Location &at = message.location;
  if (message.range.isValid()) {
    addPlace(object, sources, message.range);
  } else if (at.source.isValid() && sources.FindBufferContainingLoc(at.source) != 0) {
    addPlace(object, sources, {at.source, at.source});
  } else if (at.isKnown()) {
    object["file"] = json::fixUTF8(at.file);
    object["line"] = at.line;
    if (at.column != 0)
      object["column"] = at.column;
  }
  json::Array fixes;
  for (const SMFixIt &fix : message.fixes) {
    json::Object replacement{{"text", json::fixUTF8(fix.getText())}};
    addPlace(replacement, sources, fix.getRange());
    fixes.push_back(std::move(replacement));
  }
  if (!fixes.empty())
    object["fixes"] = std::move(fixes);
  return object;
}

void Diagnostics::finish() {
  if (!waiting)
    return;
  json::Object object = toJson(waiting->messages.front());
  json::Array notes;
  for (const Message &note : ArrayRef(waiting->messages).drop_front())
    notes.push_back(toJson(note));
  object["notes"] = std::move(notes);
  os << json::Value(std::move(object)) << "\n";
  waiting.reset();
}

} // namespace fagen

// fagen: printing of errors, warnings and notes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Support/Diagnostics.h"

#include "LongLines.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace fagen {

void Diagnostics::error(SMRange range, const Twine &message, ArrayRef<SMFixIt> fixes) {
  begin({SourceMgr::DK_Error, message.str(), range, fixes.vec(), {}});
}

void Diagnostics::warning(SMRange range, const Twine &message) {
  begin({SourceMgr::DK_Warning, message.str(), range, {}, {}});
}

void Diagnostics::remark(SMRange range, const Twine &message) {
  begin({SourceMgr::DK_Remark, message.str(), range, {}, {}});
}

void Diagnostics::note(SMRange range, const Twine &message) {
  append({SourceMgr::DK_Note, message.str(), range, {}, {}});
}

void Diagnostics::error(const Location &location, const Twine &message) {
  begin({SourceMgr::DK_Error, message.str(), {}, {}, location});
}

void Diagnostics::warning(const Location &location, const Twine &message) {
  begin({SourceMgr::DK_Warning, message.str(), {}, {}, location});
}

void Diagnostics::remark(const Location &location, const Twine &message) {
  begin({SourceMgr::DK_Remark, message.str(), {}, {}, location});
}

void Diagnostics::note(const Location &location, const Twine &message) {
  append({SourceMgr::DK_Note, message.str(), {}, {}, location});
}

void Diagnostics::print(const Message &message) const {
  const Location &at = message.location;
  const auto shown = [&] {
    if (message.range.isValid())
      return sources.GetMessage(message.range.Start, message.kind, message.text, message.range, message.fixes);
    if (at.source.isValid() && sources.FindBufferContainingLoc(at.source) != 0)
      return sources.GetMessage(at.source, message.kind, message.text);
    return SMDiagnostic(sources, SMLoc(), at.isKnown() ? at.file : "fagen", at.isKnown() ? int(at.line) : -1,
                        at.column ? int(at.column) - 1 : -1, message.kind, message.text, "", {});
  };
  printWithShortLine(shown(), os);
}

void Diagnostics::internalError(const Twine &where, const Twine &message, const Location &location) {
  ++internalErrors;
  error(location, "internal error in " + where + ": " + message); // check-messages: no input causes it
}

void Diagnostics::begin(Message message) {
  message.text = withShortLines(std::move(message.text));
  notes = 0;
  lastDropped = message.kind == SourceMgr::DK_Remark && !showRemarks;
  if (message.kind == SourceMgr::DK_Error)
    ++errors;
  if (lastDropped)
    return;
  const SMLoc place = message.range.isValid() ? message.range.Start : message.location.source;
  kept.push_back({{std::move(message)}, place});
  if (sortedDepth == 0)
    flush();
}

void Diagnostics::append(Message message) {
  if (lastDropped || ++notes > kMostNotes + 1)
    return;
  message.text = notes > kMostNotes ? ("more than " + Twine(kMostNotes) + " notes; the others are not shown").str()
                                    : withShortLines(std::move(message.text));
  if (sortedDepth != 0 && !kept.empty())
    kept.back().messages.push_back(std::move(message));
  else if (waiting)
    waiting->messages.push_back(std::move(message));
  else
    show({{std::move(message)}, SMLoc()});
}

/// Whether a message is over the limit of its kind; the first that is becomes the word that there are more.
bool Diagnostics::isOverLimit(Group &group, unsigned &shownErrors) {
  const SourceMgr::DiagKind kind = group.messages[0].kind;
  if (kind != SourceMgr::DK_Error && kind != SourceMgr::DK_Warning)
    return false;
  unsigned &shown = kind == SourceMgr::DK_Error ? shownErrors : warnings;
  if (++shown <= kErrorLimit)
    return false;
  const StringRef name = kind == SourceMgr::DK_Error ? "errors" : "warnings";
  if (shown == kErrorLimit + 1)
    show({{{kind, ("more than " + Twine(kErrorLimit) + " " + name + "; the others are not shown").str(), {}, {}, {}}},
          SMLoc()});
  return true;
}

// Messages over the limit are counted but not shown. Those of a Sorted scope are cut after sorting, so that the first
// ones of the file are seen, not the first ones found.
void Diagnostics::flush() {
  llvm::stable_sort(kept, [&](const Group &a, const Group &b) {
    unsigned bufferA = a.place.isValid() ? sources.FindBufferContainingLoc(a.place) : 0;
    unsigned bufferB = b.place.isValid() ? sources.FindBufferContainingLoc(b.place) : 0;
    return std::make_pair(bufferA, a.place.getPointer()) < std::make_pair(bufferB, b.place.getPointer());
  });
  unsigned pending = count_if(kept, [](const Group &g) { return g.messages[0].kind == SourceMgr::DK_Error; });
  unsigned shown = errors - pending;
  for (Group &group : kept) {
    lastDropped = isOverLimit(group, shown);
    if (!lastDropped)
      show(std::move(group));
  }
  kept.clear();
}

void Diagnostics::show(Group group) {
  finish();
  if (format == DiagnosticsFormat::Json) {
    waiting = std::move(group);
    return;
  }
  for (const Message &message : group.messages)
    print(message);
}

Diagnostics::Sorted::~Sorted() {
  if (--diags.sortedDepth == 0)
    diags.flush();
}

Location Diagnostics::locate(SMLoc loc) const {
  Location location;
  unsigned buffer = loc.isValid() ? sources.FindBufferContainingLoc(loc) : 0;
  if (buffer == 0)
    return location;
  location.file = sys::path::filename(sources.getMemoryBuffer(buffer)->getBufferIdentifier()).str();
  location.source = loc;
  // To find a line takes as long as it is: of all places in it only the first is looked for.
  const char *at = loc.getPointer();
  if (at < line.begin || at > line.end) {
    std::tie(line.number, location.column) = sources.getLineAndColumn(loc, buffer);
    const char *bufferEnd = sources.getMemoryBuffer(buffer)->getBufferEnd();
    line.begin = at - (location.column - 1);
    line.end = std::find_if(at, bufferEnd, [](char c) { return c == '\n' || c == '\r'; });
  }
  location.line = line.number;
  location.column = unsigned(at - line.begin) + 1;
  return location;
}

} // namespace fagen

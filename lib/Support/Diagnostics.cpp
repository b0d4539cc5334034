// fagen: printing of errors, warnings and notes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Support/Diagnostics.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace fagen {

static SourceMgr::DiagKind kindOf(const SMDiagnostic &message) { return message.getKind(); }

void Diagnostics::error(SMRange range, const Twine &message, ArrayRef<SMFixIt> fixes) {
  begin(sources.GetMessage(range.Start, SourceMgr::DK_Error, message, range, fixes), range.Start);
}

void Diagnostics::warning(SMRange range, const Twine &message) {
  begin(sources.GetMessage(range.Start, SourceMgr::DK_Warning, message, range), range.Start);
}

void Diagnostics::remark(SMRange range, const Twine &message) {
  begin(sources.GetMessage(range.Start, SourceMgr::DK_Remark, message, range), range.Start);
}

void Diagnostics::note(SMRange range, const Twine &message) {
  append(sources.GetMessage(range.Start, SourceMgr::DK_Note, message, range));
}

SMDiagnostic Diagnostics::make(const Location &location, SourceMgr::DiagKind kind, const Twine &message) const {
  if (location.source.isValid() && sources.FindBufferContainingLoc(location.source) != 0)
    return sources.GetMessage(location.source, kind, message);
  return SMDiagnostic(sources, SMLoc(), location.isKnown() ? location.file : "fagen",
                      location.isKnown() ? int(location.line) : -1, location.column ? int(location.column) - 1 : -1,
                      kind, message.str(), "", {});
}

void Diagnostics::error(const Location &location, const Twine &message) {
  begin(make(location, SourceMgr::DK_Error, message), location.source);
}

void Diagnostics::warning(const Location &location, const Twine &message) {
  begin(make(location, SourceMgr::DK_Warning, message), location.source);
}

void Diagnostics::remark(const Location &location, const Twine &message) {
  begin(make(location, SourceMgr::DK_Remark, message), location.source);
}

void Diagnostics::note(const Location &location, const Twine &message) {
  append(make(location, SourceMgr::DK_Note, message));
}

void Diagnostics::internalError(const Twine &where, const Twine &message, const Location &location) {
  ++internalErrors;
  error(location, "internal error in " + where + ": " + message); // check-messages: no input causes it
}

void Diagnostics::begin(SMDiagnostic message, SMLoc place) {
  lastDropped = kindOf(message) == SourceMgr::DK_Remark && !showRemarks;
  if (kindOf(message) == SourceMgr::DK_Error)
    ++errors;
  if (lastDropped)
    return;
  kept.push_back({{std::move(message)}, place});
  if (sortedDepth == 0)
    flush();
}

void Diagnostics::append(SMDiagnostic message) {
  if (lastDropped)
    return;
  if (sortedDepth != 0 && !kept.empty())
    kept.back().messages.push_back(std::move(message));
  else
    message.print(nullptr, os, os.has_colors());
}

// Errors over the limit are counted but not shown. Those of a Sorted scope are cut after sorting, so that the first
// ones of the file are seen, not the first ones found.
void Diagnostics::flush() {
  llvm::stable_sort(kept, [&](const Group &a, const Group &b) {
    unsigned bufferA = a.place.isValid() ? sources.FindBufferContainingLoc(a.place) : 0;
    unsigned bufferB = b.place.isValid() ? sources.FindBufferContainingLoc(b.place) : 0;
    return std::make_pair(bufferA, a.place.getPointer()) < std::make_pair(bufferB, b.place.getPointer());
  });
  unsigned pending = count_if(kept, [](const Group &g) { return kindOf(g.messages[0]) == SourceMgr::DK_Error; });
  unsigned shown = errors - pending;
  for (const Group &group : kept) {
    lastDropped = false;
    if (kindOf(group.messages[0]) == SourceMgr::DK_Error && shown++ >= kErrorLimit) {
      lastDropped = true;
      if (shown == kErrorLimit + 1)
        os << "fagen: error: more than " << kErrorLimit << " errors; the others are not shown\n";
      continue;
    }
    for (const SMDiagnostic &message : group.messages)
      message.print(nullptr, os, os.has_colors());
  }
  kept.clear();
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
  std::tie(location.line, location.column) = sources.getLineAndColumn(loc, buffer);
  location.source = loc;
  return location;
}

} // namespace fagen

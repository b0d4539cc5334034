// fagen: errors, warnings and notes with carets, over llvm::SourceMgr.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Policy. A mistake of the user is an error at a place of the spec: lower case, no period, with the numbers and what
// would be accepted; notes follow it. Whoever reports goes on with a sane dummy value, so that one run finds all
// mistakes; drivers stop at checkpoints (`if (diags.hasErrors()) return`). What can only be a mistake of ours is an
// internal error: it names the pass and never blames the input.
//
//   x.fa:9:16: error: tile 256 x 128 with 3 stages needs 131072 B of shared memory; sm_89 has 101376 B
//       tile     = 256 x 128;
//                  ^~~~~~~~~
//   x.fa:9:16: note: with stages = 2 it is 98304 B, which fits
//
// For programs the same is one JSON object a line, with its notes inside (docs/Tools.md).
#pragma once

#include "fagen/Support/Location.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/SourceMgr.h"

#include <optional>
#include <string>
#include <vector>

namespace llvm::json {
class Object;
}

namespace fagen {

enum class DiagnosticsFormat : uint8_t { Text, Json };

class Diagnostics {
public:
  /// Prints to `os`, which both must outlive this object; colours follow the stream.
  Diagnostics(llvm::SourceMgr &sources, llvm::raw_ostream &os) : sources(sources), os(os) {}
  Diagnostics(const Diagnostics &) = delete;
  Diagnostics &operator=(const Diagnostics &) = delete;
  ~Diagnostics() { finish(); }

  static constexpr unsigned kErrorLimit = 20; ///< of errors, and of warnings
  static constexpr unsigned kMostNotes = 20;  ///< of one message

  // At a range of a buffer; the caret stands at its start.
  void error(llvm::SMRange range, const llvm::Twine &message, llvm::ArrayRef<llvm::SMFixIt> fixes = {});
  void warning(llvm::SMRange range, const llvm::Twine &message);
  void remark(llvm::SMRange range, const llvm::Twine &message);
  /// Belongs to the last error, warning or remark, and disappears with it when that is over the limit.
  void note(llvm::SMRange range, const llvm::Twine &message);

  // At a location that may have outlived its buffer (IR read back from text): then without a caret line.
  void error(const Location &location, const llvm::Twine &message);
  void warning(const Location &location, const llvm::Twine &message);
  void remark(const Location &location, const llvm::Twine &message);
  void note(const Location &location, const llvm::Twine &message);

  /// A mistake of fagen's own: `where` is the pass or part that found it. Makes the exit code 70.
  void internalError(const llvm::Twine &where, const llvm::Twine &message, const Location &location = {});

  bool hasErrors() const { return errors != 0; }
  unsigned errorCount() const { return errors; }
  bool hasInternalErrors() const { return internalErrors != 0; }
  void setShowRemarks(bool show) { showRemarks = show; }
  void setFormat(DiagnosticsFormat wanted) { format = wanted; }
  /// Prints the last message, which as JSON waits for its notes. For whoever leaves without destroying this object.
  void finish();

  /// The place of `loc` in its buffer, with the file's base name.
  Location locate(llvm::SMLoc loc) const;
  llvm::SourceMgr &getSources() { return sources; }

  /// While one lives, messages are kept, and printed in the order of their places when it ends.
  class Sorted {
  public:
    explicit Sorted(Diagnostics &diags) : diags(diags) { ++diags.sortedDepth; }
    ~Sorted();
    Sorted(const Sorted &) = delete;
    Sorted &operator=(const Sorted &) = delete;

  private:
    Diagnostics &diags;
  };

private:
  /// A message without its line of the source, which only what is printed needs: thousands may be at one long line.
  struct Message {
    llvm::SourceMgr::DiagKind kind;
    std::string text;
    llvm::SMRange range;              ///< not valid: the location counts
    std::vector<llvm::SMFixIt> fixes; ///< of a range
    Location location;
  };
  /// A message with its notes.
  struct Group {
    std::vector<Message> messages;
    llvm::SMLoc place;
  };

  void begin(Message message);
  void append(Message message);
  bool isOverLimit(Group &group, unsigned &shownErrors);
  void flush();
  void show(Group group);
  void print(const Message &message) const;
  llvm::json::Object toJson(const Message &message) const;

  /// A line of a buffer: what locate() found last.
  struct Line {
    const char *begin = nullptr, *end = nullptr; ///< of its text; of none: no place is between them
    unsigned number = 0;
  };

  llvm::SourceMgr &sources;
  llvm::raw_ostream &os;
  mutable Line line;
  std::vector<Group> kept;
  std::optional<Group> waiting; ///< with JSON: the last message, for notes that follow
  DiagnosticsFormat format = DiagnosticsFormat::Text;
  unsigned errors = 0;
  unsigned internalErrors = 0;
  unsigned warnings = 0; ///< that were shown, or would have been
  unsigned notes = 0;    ///< of the last message
  unsigned sortedDepth = 0;
  bool showRemarks = false;
  bool lastDropped = false; ///< the last message was not shown, so its notes are not either
};

} // namespace fagen

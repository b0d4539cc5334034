// fagen: the files of a kernel set, which change together, and a mark on them while they do.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Support/OutputSet.h"

#include "fagen/Output/OutputFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Parallel.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace fagen {

static ErrorOr<std::unique_ptr<MemoryBuffer>> bytesOf(StringRef path) {
  return MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
}

std::optional<std::string> readFile(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = bytesOf(path);
  if (!buffer)
    return std::nullopt;
  return (*buffer)->getBuffer().str();
}

/// Whether the file is there and has this text.
static bool has(StringRef path, StringRef text) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = bytesOf(path);
  return buffer && (*buffer)->getBuffer() == text;
}

static std::string failure(StringRef path, std::error_code code) {
  return ("cannot write '" + path + "': " + code.message()).str();
}

namespace {

/// Directories that files need. Those that it made go with it, as long as nothing is in them.
class MadeDirectories {
public:
  MadeDirectories() = default;
  MadeDirectories(const MadeDirectories &) = delete;
  ~MadeDirectories() {
    for (const std::string &path : reverse(made))
      sys::fs::remove(path); // fails where something is in it
  }

  std::error_code make(StringRef path) {
    if (path.empty() || sys::fs::is_directory(path)) // the working directory is there
      return {};
    if (std::error_code code = make(sys::path::parent_path(path)))
      return code;
    if (std::error_code code = sys::fs::create_directory(path, /*IgnoreExisting=*/true, sys::fs::all_all))
      return code;
    made.push_back(path.str());
    return {};
  }

private:
  std::vector<std::string> made; ///< from the outside in
};

/// When a file gets its place.
enum class Turn { Mark, File, Manifest };

/// A file on its way.
struct Change {
  Change(Turn turn, size_t set, const OutputSet::File &file)
      : turn(turn), set(set), file(&file), replacement(file.path) {}

  Turn turn;
  size_t set; ///< its number
  const OutputSet::File *file;
  Replacement replacement;
  bool isNeeded = false;
};

} // namespace

static std::vector<Change> changesOf(ArrayRef<OutputSet> sets) {
  std::vector<Change> changes;
  for (const auto &[number, set] : enumerate(sets)) {
    changes.emplace_back(Turn::Mark, number, set.getMark());
    for (const OutputSet::File &file : set.getFiles())
      changes.emplace_back(Turn::File, number, file);
    changes.emplace_back(Turn::Manifest, number, set.getManifest());
  }
  return changes;
}

/// Takes a step with all files side by side, since they are independent. Gives the message of the first that fails.
static std::string forAll(MutableArrayRef<Change> changes, function_ref<std::string(Change &)> step) {
  std::vector<std::string> problems(changes.size());
  parallelFor(0, changes.size(), [&](size_t i) { problems[i] = step(changes[i]); });
  const auto failed = find_if(problems, [](const std::string &problem) { return !problem.empty(); });
  return failed == problems.end() ? "" : *failed;
}

static std::string check(Change &change) {
  std::string problem = change.replacement.check();
  change.isNeeded = problem.empty() && change.turn != Turn::Mark &&
                    !(change.replacement.replacesFile() && has(change.file->path, change.file->text));
  return problem;
}

/// A set in which something changes needs the mark, and its manifest again.
static void markChangedSets(MutableArrayRef<Change> changes, ArrayRef<OutputSet> sets) {
  std::vector<bool> changed;
  for (const OutputSet &set : sets)
    changed.push_back(!set.getStale().empty());
  for (const Change &change : changes)
    if (change.isNeeded)
      changed[change.set] = true;
  for (Change &change : changes)
    if (change.turn != Turn::File)
      change.isNeeded = changed[change.set];
}

static std::string makeDirectories(ArrayRef<Change> changes, MadeDirectories &directories) {
  for (const Change &change : changes)
    if (change.isNeeded)
      if (std::error_code code = directories.make(sys::path::parent_path(change.file->path)))
        return failure(change.file->path, code);
  return {};
}

static std::string write(Change &change) { return change.isNeeded ? change.replacement.write(change.file->text) : ""; }

static std::string place(MutableArrayRef<Change> changes, Turn turn) {
  for (Change &change : changes)
    if (change.isNeeded && change.turn == turn)
      if (std::string problem = change.replacement.place(); !problem.empty())
        return problem;
  return {};
}

static std::string removeStale(ArrayRef<OutputSet> sets) {
  for (const OutputSet &set : sets)
    for (const std::string &path : set.getStale())
      if (std::error_code code = sys::fs::remove(path))
        return ("cannot remove '" + path + "': " + code.message());
  return {};
}

std::string commit(ArrayRef<OutputSet> sets, function_ref<std::string()> lastLook) {
  MadeDirectories directories; // which outlives the files in them
  std::vector<Change> changes = changesOf(sets);
  std::string problem = forAll(changes, check);
  if (!problem.empty())
    return problem;
  markChangedSets(changes, sets);
  if (problem = makeDirectories(changes, directories); !problem.empty())
    return problem;
  if (problem = forAll(changes, write); !problem.empty())
    return problem;
  if (problem = lastLook(); !problem.empty())
    return problem;
  if (problem = place(changes, Turn::Mark); !problem.empty())
    return problem;
  if (problem = place(changes, Turn::File); !problem.empty())
    return problem;
  if (problem = removeStale(sets); !problem.empty())
    return problem;
  return place(changes, Turn::Manifest);
}

} // namespace fagen

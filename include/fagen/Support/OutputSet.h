// fagen: the files of a kernel set, which change together, and a mark on them while they do.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// add() collects texts; commit() writes those that differ from what is there to temporary files next to their places,
// and only when all were written renames them, and then removes the files that remove() named. Files that do not differ
// are left alone, with their times, so that a build that depends on them has nothing to do. Before the first rename a
// failure leaves everything as it was, without a directory that was made for the files. From before the first rename
// until after the last removal the manifest says that the set is unfinished: whoever reads it then, also after the
// process was killed, knows that the files do not belong together.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace fagen {

class OutputSet {
public:
  struct File {
    std::string path;
    std::string text;
  };

  void add(std::string path, std::string text) { files.push_back({std::move(path), std::move(text)}); }
  void remove(std::string path) { stale.push_back(std::move(path)); }
  /// The file that describes the others. A set that commit() gets has one.
  void setManifest(std::string path, std::string finished, std::string unfinished) {
    mark = {path, std::move(unfinished)};
    manifest = {std::move(path), std::move(finished)};
  }

  llvm::ArrayRef<File> getFiles() const { return files; }
  llvm::ArrayRef<std::string> getStale() const { return stale; }
  const File &getMark() const { return mark; }
  const File &getManifest() const { return manifest; }

private:
  std::vector<File> files;
  std::vector<std::string> stale;
  File mark, manifest;
};

/// Brings the sets into place. Empty on success; else what went wrong, with the path: "cannot write 'out/a.cu':
/// Permission denied". A file only takes the place of a regular file or of nothing; links are followed.
/// `lastLook` is asked when everything is written and nothing renamed: why not to go on, or nothing.
[[nodiscard]] std::string
commit(llvm::ArrayRef<OutputSet> sets, llvm::function_ref<std::string()> lastLook = [] { return std::string(); });

/// The file's bytes, or nothing when it cannot be read.
std::optional<std::string> readFile(llvm::StringRef path);

} // namespace fagen

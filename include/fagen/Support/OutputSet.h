// fagen: a set of output files that appears in place whole or not at all.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// add() collects texts; commit() writes those that differ from what is there to temporary files beside their places,
// and only when all were written renames them, in the order in which they were added, and then removes the files that
// remove() named. Unchanged files are left alone, with their times, so that a build that depends on them has nothing to
// do. Before the first rename a failure leaves everything as it was.
#pragma once

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace fagen {

class OutputSet {
public:
  void add(std::string path, std::string text) { files.push_back({std::move(path), std::move(text)}); }
  void remove(std::string path) { stale.push_back(std::move(path)); }

  struct File {
    std::string path;
    std::string text;
  };
  const std::vector<File> &getFiles() const { return files; }

  /// Empty on success; else what went wrong, with the path: "cannot write 'out/a.cu': Permission denied".
  [[nodiscard]] std::string commit();

private:
  std::vector<File> files;
  std::vector<std::string> stale;
};

/// The file's bytes, or nothing when it cannot be read.
std::optional<std::string> readFile(llvm::StringRef path);

} // namespace fagen

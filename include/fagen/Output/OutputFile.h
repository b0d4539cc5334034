// fagen: files that a tool was asked to write.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A regular file is replaced whole: the text is written next to it, then renamed over it, so that nobody sees half of
// it. Links are followed, so a link stays one. Functions return an empty text on success, else the message for the
// user: "cannot write 'out/a.cu': Permission denied".
#pragma once

#include <string>
#include <string_view>

namespace fagen {

/// Does what `-o PATH` asks of a compiler: replaces a regular file, or makes one; writes to a device, pipe or FIFO,
/// which stays what it is; refuses a directory. A new file has the permissions that the umask leaves, a replaced one
/// keeps its own.
[[nodiscard]] std::string writeOutput(const std::string &path, std::string_view text);

/// A new text of one file, in steps, so that several files can be checked and written before the first one changes:
/// check(), write(), place(), in this order, each once.
class Replacement {
public:
  explicit Replacement(std::string path) : path(std::move(path)) {}
  Replacement(const Replacement &) = delete;
  Replacement(Replacement &&other) noexcept;
  ~Replacement(); ///< removes what write() wrote unless place() put it there

  /// Follows links, and looks at what is there: fails unless it is nothing, or a regular file that may be written.
  [[nodiscard]] std::string check();
  /// Whether check() found a file.
  bool replacesFile() const { return exists; }
  /// Writes the text to a temporary file in the directory of the file that is replaced.
  [[nodiscard]] std::string write(std::string_view text);
  /// Renames the temporary file.
  [[nodiscard]] std::string place();

private:
  std::string failure(int code) const;

  std::string path;      ///< as the user has it
  std::string target;    ///< with links followed
  std::string temporary; ///< empty: none
  bool exists = false;
  unsigned mode = 0, owner = 0, group = 0; ///< of the file that exists
};

} // namespace fagen

// fagen: a directory whose files nobody but this user can have written.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a cache hands out runs with the rights of this process. So its directory, and each file that is read there, must
// belong to this user or to root, and nobody else may write to it. Both are asked of what has been opened, and files
// are opened in that directory: whoever can rename what lies above it gains nothing.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace fagen {

class PrivateDirectory {
public:
  /// None.
  PrivateDirectory() = default;
  /// Opens it; makes it, and what is missing above it, for this user alone. On failure it is not open, and `error` says
  /// why and what helps.
  PrivateDirectory(std::string path, std::string &error);
  ~PrivateDirectory();
  PrivateDirectory(PrivateDirectory &&other) noexcept;
  PrivateDirectory &operator=(PrivateDirectory &&) = delete;

  bool isOpen() const { return descriptor >= 0; }
  const std::string &path() const { return name; }

  /// A file's content. False where there is none, where it is a link or no file, and where others can have written it.
  bool read(const std::string &file, std::string &content) const;

  /// Replaces a file by these parts, one after the other: a temporary file next to it, sync, rename. So other processes
  /// see a whole file or none. False with `error` set.
  bool write(const std::string &file, std::initializer_list<std::string_view> parts, std::string &error) const;

private:
  std::string name;
  int descriptor = -1;
};

} // namespace fagen

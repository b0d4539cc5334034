// fagen: a file as memory, of which only what is looked at is read.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <string_view>

namespace fagen {

/// The bytes of a file for as long as the object lives; the file must not get shorter meanwhile. A FieldError where it
/// cannot be read.
class MappedFile {
public:
  explicit MappedFile(const std::string &path);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  std::string_view bytes() const { return {static_cast<const char *>(memory), size}; }

private:
  void *memory = nullptr; ///< null for an empty file
  size_t size = 0;
};

} // namespace fagen

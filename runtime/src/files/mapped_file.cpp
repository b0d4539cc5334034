// fagen: a file as memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "files/mapped_file.h"

#include "fields.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fagen {

MappedFile::MappedFile(const std::string &path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status = {};
  bool isRead = file >= 0 && fstat(file, &status) == 0;
  if (isRead && status.st_size > 0) {
    size = static_cast<size_t>(status.st_size);
    memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    isRead = memory != MAP_FAILED;
  }
  const int reason = errno;
  if (file >= 0)
    close(file);
  if (!isRead)
    throw FieldError("cannot read " + path + ": " + std::strerror(reason));
}

MappedFile::~MappedFile() {
  if (memory)
    munmap(memory, size);
}

} // namespace fagen

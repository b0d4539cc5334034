// fagen: copies of buffers that lie far apart in the address space.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "apart.h"

#include "lab/cases/problem.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

namespace fagen::lab {

/// Of the 2^47 bytes that a process has.
static constexpr size_t kMostReserved = size_t{1} << 46;
static constexpr size_t kPage = 4096;

static size_t pagesOf(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

BuffersApart::BuffersApart(const std::vector<std::vector<unsigned char>> &contents) {
  size_t largest = kPage;
  for (const std::vector<unsigned char> &content : contents)
    largest = std::max(largest, pagesOf(content.size()));
  const size_t count = contents.size() + 1; // a distance before the first, too
  size_t distance = std::max(kMostReserved / count / kPage * kPage, largest);
  void *found = MAP_FAILED;
  for (;; distance = std::max(distance / 2 / kPage * kPage, largest)) {
    bytes = distance * count;
    found = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found != MAP_FAILED || distance == largest)
      break;
  }
  if (found == MAP_FAILED)
    throw UserError("no memory for the program's buffers");
  reserved = static_cast<unsigned char *>(found);
  for (size_t i = 0; i < contents.size(); ++i) {
    unsigned char *const begin = reserved + (2 * i + 1) * (distance / 2 / kPage * kPage);
    if (!contents[i].empty() && mprotect(begin, pagesOf(contents[i].size()), PROT_READ | PROT_WRITE) != 0)
      throw UserError("no memory for the program's buffers");
    if (!contents[i].empty())
      std::memcpy(begin, contents[i].data(), contents[i].size());
    begins.push_back(begin);
  }
}

BuffersApart::~BuffersApart() { munmap(reserved, bytes); }

void BuffersApart::copyTo(std::vector<std::vector<unsigned char>> &contents) const {
  for (size_t i = 0; i < contents.size(); ++i)
    if (!contents[i].empty())
      std::memcpy(contents[i].data(), begins[i], contents[i].size());
}

} // namespace fagen::lab

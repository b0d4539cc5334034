// fagen: copies of buffers that lie far apart in the address space.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <vector>

namespace fagen::lab {

/// An address that is computed from a wrong index is nearest to the buffer that it was meant for: what lies between is
/// reserved, and there is nothing there.
class BuffersApart {
public:
  explicit BuffersApart(const std::vector<std::vector<unsigned char>> &contents);
  ~BuffersApart();
  BuffersApart(const BuffersApart &) = delete;
  BuffersApart &operator=(const BuffersApart &) = delete;

  unsigned char *begin(size_t buffer) const { return begins[buffer]; }
  /// Copies back what stands there now.
  void copyTo(std::vector<std::vector<unsigned char>> &contents) const;

private:
  unsigned char *reserved = nullptr;
  size_t bytes = 0;
  std::vector<unsigned char *> begins;
};

} // namespace fagen::lab

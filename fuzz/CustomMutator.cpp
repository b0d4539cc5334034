// fagen: libFuzzer's hook for edits: most of them of words and lines, the others of bytes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TextMutator.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  if (seed % 5 == 0)
    return LLVMFuzzerMutate(data, size, maxSize);
  std::string text(reinterpret_cast<const char *>(data), size);
  fagen::fuzz::mutateText(text, seed);
  const size_t length = std::min(text.size(), maxSize);
  std::memcpy(data, text.data(), length);
  return length;
}

// fagen: what a device does by its simpler functions unless it knows better.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device.h"

namespace fagen::lab {

Sequence TestDevice::runAll(const std::vector<Launch> &launches, double) {
  Sequence sequence;
  for (const Launch &launch : launches) {
    sequence.failures = run(launch);
    if (!sequence.failures.empty())
      return sequence;
    ++sequence.ended;
  }
  return sequence;
}

void TestDevice::copy(void *to, const void *from, int64_t bytes) {
  std::vector<char> between(bytes);
  download(between.data(), from, bytes);
  upload(to, between.data(), bytes);
}

std::vector<int64_t> TestDevice::differences(const std::vector<MemoryPair> &pairs) {
  std::vector<int64_t> counts;
  for (const MemoryPair &pair : pairs) {
    std::vector<uint32_t> words[2];
    for (int which : {0, 1}) {
      words[which].resize(pair.bytes / sizeof(uint32_t));
      download(words[which].data(), which ? pair.b : pair.a, pair.bytes);
    }
    int64_t &different = counts.emplace_back(0);
    for (size_t i = 0; i < words[0].size(); ++i)
      different += words[0][i] != words[1][i];
  }
  return counts;
}

} // namespace fagen::lab

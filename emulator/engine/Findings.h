// fagen: what a CTA did wrong, one entry for each kind and place.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "emulator/emulator.h"
#include <fagen/device/ptx/site.h>
#include <string_view>

namespace fagen::emulator {

using Site = device::ptx::Site;

/// What stands on a line; null when nobody knows.
const LineInfo *infoOf(const std::vector<LineInfo> &lines, int line);
/// "mma@12 of l4_fp16.fa:17"
std::string describe(const LineInfo &info);

/// The findings of one CTA or, merged, of a launch. A repetition is only counted, so that a wrong access in a loop
/// costs little.
class Findings {
public:
  explicit Findings(size_t limit = 0) : limit(limit) {}

  /// Who did it, and the other side: of a race the earlier access, of an unfinished copy its issue.
  struct Pair {
    int otherLine = 0;
    int thread = -1, otherThread = -1;
  };

  /// `message()` is called only for the first finding of this kind at this place, or pair of places.
  template <class Message> void add(const char *kind, Site site, Message message, const Pair &pair = {}) {
    if (!isKnown(kind, site, pair, 1))
      entries.push_back({kind, site, pair, message(), 1});
  }

  bool empty() const { return entries.empty(); }
  void clear() { entries.clear(); }
  void merge(const Findings &other);

  /// As reported: the file that the compiler knew as `compiledName` is called `cuPath`, in messages without directory.
  /// `lines` says what stands where.
  std::vector<Finding> list(std::string_view compiledName, const std::string &cuPath,
                            const std::vector<LineInfo> &lines) const;

private:
  struct Entry {
    const char *kind;
    Site site;
    Pair pair;
    std::string message;
    uint64_t count;
  };

  bool isKnown(const char *kind, Site site, const Pair &pair, uint64_t count);

  size_t limit;
  std::vector<Entry> entries;
};

} // namespace fagen::emulator

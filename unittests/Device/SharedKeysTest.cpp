// fagen: splits share the key tiles that rows see: each once, none more than a tile over the others.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fagen/device/ops/split.h>

#include <algorithm>
#include <gtest/gtest.h>
#include <set>

using namespace fagen::device;

namespace {

constexpr int kTile = 8;

struct Range {
  int first, end, gapBegin = 0, gapEnd = 0;

  bool hides(int key) const { return gapBegin <= key && key < gapEnd; }
  bool sees(int key) const { return first <= key && key < end && !hides(key); }
};

/// A gap hides whole tiles only.
bool isHidden(const Range &range, int tile) {
  return range.gapBegin <= tile * kTile &&
         (tile + 1) * kTile <= std::min(range.gapEnd, std::max(range.end, range.first));
}

void expectShared(const Range &range, int keys, int splits, bool hasGap) {
  AttentionParams params = {};
  params.seq_kv = keys;
  params.splits = splits;
  std::set<int> seen;
  int most = 0, least = keys;
  for (int split = 0; split < splits; ++split) {
    SplitPlace place = {};
    place.split = split;
    if (hasGap)
      share_seen_keys<kTile>(place, params, range.first, range.end, range.gapBegin, range.gapEnd);
    else
      share_seen_keys<kTile>(place, params, range.first, range.end);
    ASSERT_EQ(place.split_begin % kTile, 0);
    ASSERT_LE(place.split_begin + place.split_keys, std::max(keys, place.split_begin));
    if (place.split_keys > 0) { // it begins and ends with a tile of its own
      ASSERT_FALSE(isHidden(range, place.split_begin / kTile));
      ASSERT_FALSE(isHidden(range, (place.split_begin + place.split_keys - 1) / kTile));
    }
    int tiles = 0;
    for (int key = place.split_begin; key < place.split_begin + place.split_keys; key += kTile)
      if (!isHidden(range, key / kTile)) {
        ASSERT_TRUE(seen.insert(key / kTile).second) << "tile " << key / kTile << " twice";
        ++tiles;
      }
    most = std::max(most, tiles);
    least = std::min(least, tiles);
  }
  EXPECT_LE(most - least, 1);
  for (int key = 0; key < keys; ++key)
    ASSERT_TRUE(!range.sees(key) || seen.count(key / kTile))
        << "key " << key << " of [" << range.first << ", " << range.end << ") without [" << range.gapBegin << ", "
        << range.gapEnd << ")";
}

TEST(SharedKeys, OfOneRange) {
  for (int keys : {0, 1, 37, 64})
    for (int first = 0; first <= keys + 9; ++first)
      for (int end : {0, first, first + 1, first + 20, keys, keys + 5})
        for (int splits : {1, 2, 3, 5, 9})
          expectShared({first, end}, keys, splits, false);
}

TEST(SharedKeys, AroundAGap) {
  for (int keys : {0, 37, 64})
    for (int end : {0, 30, keys})
      for (int first : {0, 5, 16, 27})
        for (int gapBegin = -30; gapBegin <= keys; gapBegin += 3)
          for (int gapEnd = -12; gapEnd <= keys + 4; gapEnd += 3)
            for (int splits : {1, 2, 3, 5, 9})
              expectShared({first, end, gapBegin, gapEnd}, keys, splits, true);
}

} // namespace

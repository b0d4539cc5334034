// fagen: strided images: what is scattered comes back, and what lies between is watched.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/device/case_memory.h"

#include <gtest/gtest.h>
#include <numeric>

using namespace fagen::lab;

namespace {

constexpr Layout kLayouts[] = {Layout::Bhsd, Layout::Bshd,   Layout::Padded, Layout::Odd, Layout::Offset,
                               Layout::Junk, Layout::Shared, Layout::OneRow, Layout::Far};

std::vector<uint16_t> counting(const Placement &place) {
  std::vector<uint16_t> dense(place.elements());
  std::iota(dense.begin(), dense.end(), uint16_t{1});
  return dense;
}

TEST(Placement, everyLayoutGivesBackWhatWasScattered) {
  for (Layout layout : kLayouts)
    for (std::array<int64_t, 4> sizes : {std::array<int64_t, 4>{2, 3, 5, 8}, {1, 3, 1, 8}, {2, 0, 5, 8}}) {
      Image<uint16_t> image(placeTensor(layout, sizes, kO));
      std::vector<uint16_t> dense = counting(image.placement());
      image.poison();
      image.scatter(dense);
      EXPECT_EQ(image.collect(), dense);
      EXPECT_EQ(image.firstForeignWord(), std::nullopt);
    }
}

/// Inputs may have strides of 0: the same row is there for each index.
TEST(Placement, sharedRowsLieInOnePlace) {
  Case c;
  c.shape = {2, 4, 2, 3, 5, 8, 8};
  for (auto [layout, spans] : {std::pair{Layout::Shared, std::array<int64_t, 3>{4 * 3 * 8, 5 * 8, (2 * 2 - 1) * 5 * 8}},
                               {Layout::OneRow, {2 * 4 * 3 * 8, (2 * 2 - 1) * 5 * 8 + 8, (2 * 2 - 1) * 5 * 8 + 8}}}) {
    c.layout = layout;
    const DenseInputs inputs = makeInputs(c, 1);
    const Placements places(c);
    EXPECT_EQ(places.q.span(), spans[0]);
    EXPECT_EQ(places.k.span(), spans[1]);
    EXPECT_EQ(places.o.span(), 2 * 4 * 3 * 8);
    for (const auto &[place, dense] :
         {std::pair{places.q, inputs.q}, std::pair{places.k, inputs.k}, std::pair{places.v, inputs.v}}) {
      Image<uint16_t> image(place);
      image.poison();
      image.scatter(dense);
      EXPECT_EQ(image.collect(), dense);
      EXPECT_EQ(image.firstForeignWord(), std::nullopt);
    }
  }
  EXPECT_NE(makeInputs(c, 1).q[0], makeInputs(c, 1).q[8]); // Q has all its rows there
}

TEST(Placement, strides) {
  using Strides = std::array<int64_t, 3>;
  EXPECT_EQ(placeTensor(Layout::Bhsd, {2, 3, 5, 8}, kQ).strides, (Strides{120, 40, 8}));
  EXPECT_EQ(placeTensor(Layout::Bshd, {2, 3, 5, 8}, kQ).strides, (Strides{120, 8, 24}));
  EXPECT_EQ(placeTensor(Layout::Junk, {1, 1, 1, 8}, kK).strides, (Strides{3331333, 99990001, 0}));
  EXPECT_EQ(placeTensor(Layout::Offset, {2, 3, 5, 8}, kQ).baseOffset, 1);
  EXPECT_GT(placeTensor(Layout::Far, {2, 3, 5, 8}, kQ).offset(1, 0, 0), int64_t{1} << 31);
  EXPECT_EQ(placeTensor(Layout::Shared, {2, 3, 5, 8}, kQ).strides, (Strides{0, 40, 8}));
  EXPECT_EQ(placeTensor(Layout::Shared, {2, 3, 5, 8}, kK).strides, (Strides{0, 0, 8}));
  EXPECT_EQ(placeTensor(Layout::Shared, {2, 3, 5, 8}, kV).strides, (Strides{120, 0, 8}));
  EXPECT_EQ(placeTensor(Layout::OneRow, {2, 3, 5, 8}, kV).strides, (Strides{120, 40, 0}));
  for (int64_t stride : placeTensor(Layout::Padded, {2, 3, 5, 8}, kQ).strides)
    EXPECT_EQ(stride % 8, 0);
}

/// A word changed before, after or between the elements is found, and said where from the base.
TEST(Placement, foreignWordsAreFound) {
  for (int64_t offset : {-1, -2048, 8, 4 * 16 + 8}) {
    Image<uint16_t> image(placeTensor(Layout::Padded, {1, 1, 5, 8}, kQ));
    image.poison();
    image.windows()[0].words[image.baseBytes() / 2 + offset] = 7;
    image.collect();
    EXPECT_EQ(image.firstForeignWord(), offset);
  }
  Image<uint16_t> image(placeTensor(Layout::Bhsd, {1, 1, 5, 8}, kQ));
  image.poison();
  image.windows()[0].words[image.baseBytes() / 2 + 39] = 7; // the last element
  image.collect();
  EXPECT_EQ(image.firstForeignWord(), std::nullopt);
}

TEST(Placement, farBatchesHaveAWindowEach) {
  Image<uint16_t> image(placeTensor(Layout::Far, {2, 1, 5, 8}, kQ));
  ASSERT_EQ(image.windows().size(), 2u);
  EXPECT_GT(image.allocationBytes(), int64_t{1} << 32);
  EXPECT_LT(image.windows()[1].words.size(), 10000u);
  EXPECT_LE(image.windows()[1].begin * 2 + static_cast<int64_t>(image.windows()[1].words.size()) * 2,
            image.allocationBytes());
}

} // namespace

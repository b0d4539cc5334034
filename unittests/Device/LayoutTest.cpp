// fagen: where (row, column) of a shared tile lies: every byte once, chunks whole, no bank conflicts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fagen/device/tile/layout.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

using namespace fagen::device;

namespace {

constexpr unsigned kChunk = 16;
constexpr unsigned kHalf = 2; // bytes of an f16 or bf16

struct Shape {
  Swizzle swizzle;
  unsigned rows, columns, elementBytes;

  unsigned offset(unsigned row, unsigned column) const {
    return tile_offset(swizzle, rows, columns, elementBytes, row, column);
  }
};

std::ostream &operator<<(std::ostream &os, const Shape &shape) {
  return os << shape.rows << " x " << shape.columns << " of " << shape.elementBytes << " B, "
            << (shape.swizzle == Swizzle::kXor   ? "xor"
                : shape.swizzle == Swizzle::kPad ? "pad"
                                                 : "none");
}

/// Tiles of Q, K and V: every head dim that an instruction takes.
std::vector<Shape> tensorTiles(Swizzle swizzle) {
  std::vector<Shape> shapes;
  for (unsigned rows : {8u, 16u, 24u, 32u, 48u, 64u, 128u})
    for (unsigned columns = 16; columns <= 256; columns += 16)
      shapes.push_back({swizzle, rows, columns, kHalf});
  return shapes;
}

/// The 16-byte chunk of each thread of a phase must lie in a group of four banks of its own. How many threads share
/// the busiest group.
unsigned busiestGroup(const std::vector<unsigned> &addresses) {
  std::array<unsigned, 8> threads{};
  for (unsigned address : addresses)
    ++threads[address / kChunk % 8];
  return *std::max_element(threads.begin(), threads.end());
}

/// ldmatrix: a phase is eight rows of one chunk column.
unsigned worstLdmatrixPhase(const Shape &shape) {
  unsigned worst = 0;
  for (unsigned row = 0; row < shape.rows; row += 8)
    for (unsigned column = 0; column < shape.columns; column += kChunk / kHalf) {
      std::vector<unsigned> addresses;
      for (unsigned i = 0; i < 8; ++i)
        addresses.push_back(shape.offset(row + i, column));
      worst = std::max(worst, busiestGroup(addresses));
    }
  return worst;
}

/// 16-byte copies: a phase is eight threads with consecutive chunks, row by row.
unsigned worstCopyPhase(const Shape &shape) {
  const unsigned perRow = shape.columns * kHalf / kChunk;
  unsigned worst = 0;
  for (unsigned chunk = 0; chunk + 8 <= shape.rows * perRow; chunk += 8) {
    std::vector<unsigned> addresses;
    for (unsigned i = chunk; i < chunk + 8; ++i)
      addresses.push_back(shape.offset(i / perRow, i % perRow * (kChunk / kHalf)));
    worst = std::max(worst, busiestGroup(addresses));
  }
  return worst;
}

TEST(Layout, everyElementHasBytesOfItsOwn) {
  std::vector<Shape> shapes = tensorTiles(Swizzle::kXor);
  for (Swizzle swizzle : {Swizzle::kNone, Swizzle::kPad})
    for (const Shape &shape : tensorTiles(swizzle))
      shapes.push_back(shape);
  shapes.push_back({Swizzle::kNone, 64, 72, 4}); // partial results: a row of O, m and l
  shapes.push_back({Swizzle::kNone, 32, 32, 4});
  for (const Shape &shape : shapes) {
    std::vector<bool> taken(tile_bytes(shape.swizzle, shape.rows, shape.columns, shape.elementBytes) /
                            shape.elementBytes);
    ASSERT_GE(taken.size(), shape.rows * shape.columns) << shape;
    for (unsigned row = 0; row < shape.rows; ++row)
      for (unsigned column = 0; column < shape.columns; ++column) {
        const unsigned offset = shape.offset(row, column);
        ASSERT_EQ(offset % shape.elementBytes, 0u) << shape;
        ASSERT_LT(offset / shape.elementBytes, taken.size()) << shape << " at " << row << ", " << column;
        ASSERT_FALSE(taken[offset / shape.elementBytes]) << shape << " at " << row << ", " << column;
        taken[offset / shape.elementBytes] = true;
      }
  }
}

TEST(Layout, chunksStayWhole) {
  for (Swizzle swizzle : {Swizzle::kNone, Swizzle::kXor, Swizzle::kPad})
    for (const Shape &shape : tensorTiles(swizzle))
      for (unsigned row = 0; row < shape.rows; ++row)
        for (unsigned column = 0; column < shape.columns; column += kChunk / kHalf) {
          const unsigned begin = shape.offset(row, column);
          ASSERT_EQ(begin % kChunk, 0u) << shape;
          for (unsigned i = 1; i < kChunk / kHalf; ++i)
            ASSERT_EQ(shape.offset(row, column + i), begin + i * kHalf) << shape << " at " << row << ", " << column;
        }
}

TEST(Layout, rowMajorIsRowMajor) {
  const Shape shape{Swizzle::kNone, 16, 66, 4};
  EXPECT_EQ(shape.offset(0, 65), 260u);
  EXPECT_EQ(shape.offset(1, 0), 264u);
  EXPECT_EQ(shape.offset(15, 65), 16 * 264u - 4);
}

TEST(Layout, ldmatrixMeetsNoBankTwice) {
  for (const Shape &shape : tensorTiles(Swizzle::kXor))
    EXPECT_EQ(worstLdmatrixPhase(shape), 1u) << shape;
}

/// A padded row is 8 elements longer, so eight rows begin in eight groups of banks.
TEST(Layout, paddedRowsMeetNoBankTwice) {
  for (const Shape &shape : tensorTiles(Swizzle::kPad)) {
    EXPECT_EQ(worstLdmatrixPhase(shape), 1u) << shape;
    EXPECT_EQ(shape.offset(1, 0) - shape.offset(0, 0), (shape.columns + 8) * kHalf);
    EXPECT_EQ(shape.offset(16, 0) % 32, 0u) << shape; // what wmma asks of a matrix's address
  }
}

/// An f32 matrix stored by pieces of two elements, four of each of four rows in a phase.
TEST(Layout, paddedResultsMeetNoBankTwice) {
  for (unsigned columns = 16; columns <= 256; columns += 16) {
    const Shape shape{Swizzle::kPad, 16, columns, 4};
    std::array<unsigned, 32> words{};
    for (unsigned lane = 0; lane < 16; ++lane)
      for (unsigned i = 0; i < 2; ++i)
        ++words[shape.offset(lane / 4, lane % 4 * 2 + i) / 4 % 32];
    EXPECT_EQ(*std::max_element(words.begin(), words.end()), 1u) << shape;
  }
}

/// What the swizzle is for: without it whole phases fall on one group.
TEST(Layout, rowMajorTilesConflict) {
  EXPECT_EQ(worstLdmatrixPhase({Swizzle::kNone, 64, 64, kHalf}), 8u);
  EXPECT_EQ(worstLdmatrixPhase({Swizzle::kNone, 64, 128, kHalf}), 8u);
  EXPECT_EQ(worstLdmatrixPhase({Swizzle::kNone, 64, 16, kHalf}), 2u);
}

/// Rows of one panel or of whole 128-byte panels; where narrower panels stand side by side, eight chunks reach over
/// several and two or four meet.
TEST(Layout, copiesMeetNoBankTwice) {
  for (const Shape &shape : tensorTiles(Swizzle::kXor)) {
    const unsigned rowBytes = shape.columns * kHalf, panelBytes = panel_row_bytes(Swizzle::kXor, shape.columns, kHalf);
    EXPECT_LE(worstCopyPhase(shape), rowBytes == panelBytes || panelBytes == 128 ? 1u : 128 / panelBytes) << shape;
  }
}

/// The patterns of the bulk copy engine: address bits 4 to 6 are xored with bits 7 to 9, 4 to 5 with 7 to 8, 4 with 7.
TEST(Layout, patternsAreThoseOfTheBulkCopyEngine) {
  for (const Shape &shape : tensorTiles(Swizzle::kXor)) {
    const unsigned panelBytes = panel_row_bytes(Swizzle::kXor, shape.columns, kHalf), panelColumns = panelBytes / kHalf;
    const unsigned mask = (panelBytes - 1) & ~(kChunk - 1);
    for (unsigned row = 0; row < shape.rows; ++row)
      for (unsigned column = 0; column < shape.columns; ++column) {
        const unsigned panel = column / panelColumns * shape.rows * panelBytes;
        const unsigned plain = row * panelBytes + column % panelColumns * kHalf;
        ASSERT_EQ(shape.offset(row, column), panel + (plain ^ ((plain >> 3) & mask))) << shape;
      }
  }
}

static_assert(tile_offset(Swizzle::kXor, 64, 64, 2, 1, 0) == 128 + 16, "offsets are constants");

} // namespace

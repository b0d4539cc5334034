// fagen: which thread touches which bytes, op by op.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TestKernels.h"

#include "fagen/Analysis/Access.h"
#include "fagen/device/tile/layout.h"

#include "gtest/gtest.h"

#include <map>
#include <set>

using namespace fagen;
using namespace fagen::ir;
using namespace fagen::test;

namespace {

/// The threads that touch each byte of a slot.
using Touches = std::map<unsigned, std::set<unsigned>>;

const Op *firstOp(Lowering &lowering, bool (*is)(const Op &)) {
  const Op *found = nullptr;
  walk(lowering.body(), [&](Op &op) { found = !found && is(op) ? &op : found; });
  return found;
}

const Op *firstOp(Lowering &lowering, OpKind kind, llvm::StringRef form = {}) {
  const Op *found = nullptr;
  walk(lowering.body(), [&](Op &op) {
    if (!found && op.kind == kind && (form.empty() || op.text(Attr::Form) == form))
      found = &op;
  });
  return found;
}

Touches touchesOf(Lowering &lowering, const Op &op, unsigned operand) {
  Touches touches;
  forEachAccess(lowering.kernel, lowering.kernel.roles.front(), op, operand,
                [&](ThreadRange threads, unsigned byte, unsigned bytes) {
                  for (unsigned b = byte; b < byte + bytes; ++b)
                    for (unsigned t = threads.first; t < threads.first + threads.count; ++t)
                      touches[b].insert(t);
                });
  return touches;
}

std::set<unsigned> warp(unsigned number) {
  std::set<unsigned> threads;
  for (unsigned lane = 0; lane < 32; ++lane)
    threads.insert(32 * number + lane);
  return threads;
}

TEST(Access, CopiesGiveEachVectorToOneThread) {
  for (unsigned vectorBytes : {2u, 4u, 8u, 16u})
    for (Mma mma : {Mma::MmaSync, Mma::Scalar}) {
      Lowering lowering(
          {"copy", mma, Copy::LdSt, 64, 32, 4, 1, 64, 0, 1, OperandPlace::Shared, Reduce::Warp, vectorBytes});
      lowering.lower();
      const Op *copy = firstOp(lowering, OpKind::CopyIssue);
      const Touches touches = touchesOf(lowering, *copy, 0);
      ASSERT_EQ(touches.size(), 64u * 64 * 2);
      std::map<unsigned, unsigned> bytes;
      for (const auto &[byte, threads] : touches) {
        ASSERT_EQ(threads.size(), 1u);
        ++bytes[*threads.begin()];
      }
      for (unsigned thread = 0; thread < 128; ++thread)
        EXPECT_EQ(bytes[thread], 64u * 64 * 2 / 128);
      EXPECT_EQ(*touches.at(0).begin(), 0u);
      if (mma == Mma::Scalar) {
        EXPECT_EQ(*touches.at(vectorBytes).begin(), 1u); // row-major: the next vector is the next thread's
      }
    }
}

TEST(Access, TensorCoreOperandsBelongToTheWarpsOfTheirRows) {
  Lowering lowering({"grid", Mma::MmaSync, Copy::CpAsync, 32, 64, 4, 1, 64, 2, 2});
  lowering.lower();
  const Op *scores = firstOp(lowering, OpKind::Mma, "abt");
  const Touches q = touchesOf(lowering, *scores, 1), k = touchesOf(lowering, *scores, 2);
  std::set<unsigned> first = warp(0), second = warp(1);
  first.merge(warp(2)); // row warp 0 is warps 0 and 2
  second.merge(warp(3));
  EXPECT_EQ(q.at(0), first);
  EXPECT_EQ(q.at(16 * 128), second);
  std::set<unsigned> low = warp(0), high = warp(2);
  low.merge(warp(1)); // key warp 0 is warps 0 and 1
  high.merge(warp(3));
  EXPECT_EQ(k.at(0), low);
  EXPECT_EQ(k.at(32 * 128), high);
  EXPECT_EQ(k.size(), 64u * 64 * 2);
}

/// Whole rows are listed panel by panel: as many bytes as their elements have, wherever the layout puts those.
TEST(Access, WholeRowsAreTheBytesOfTheirElements) {
  Lowering lowering({"grid", Mma::MmaSync, Copy::CpAsync, 32, 64, 4, 1, 64, 2, 2});
  lowering.lower();
  const Op *scores = firstOp(lowering, OpKind::Mma, "abt");
  Buffer &q = *scores->operands[1].buffer;
  for (Layout layout : {Layout::RowMajor, Layout::Xor, Layout::Padded})
    for (unsigned columns : {16u, 32u, 48u, 64u, 80u, 96u, 128u, 160u}) {
      q.layout = layout;
      q.columns = columns;
      Touches expected;
      for (unsigned row = 0; row < q.rows; ++row)
        for (unsigned column = 0; column < columns; ++column)
          for (unsigned b = 0; b < 2; ++b) { // row warp 0 is warps 0 and 2
            std::set<unsigned> &threads =
                expected[device::tile_offset(device::Swizzle(layout), q.rows, columns, 2, row, column) + b];
            threads.merge(warp(row / (q.rows / 2)));
            threads.merge(warp(row / (q.rows / 2) + 2));
          }
      EXPECT_EQ(touchesOf(lowering, *scores, 1), expected);
    }
}

TEST(Access, ScalarLanesOwnKeysAndColumns) {
  Lowering lowering({"scalar", Mma::Scalar, Copy::LdSt, 32, 64, 4, 1});
  lowering.lower();
  const Op *scores = firstOp(lowering, OpKind::Mma, "abt"), *output = firstOp(lowering, OpKind::Mma, "ab");
  const Touches s = touchesOf(lowering, *scores, 0), k = touchesOf(lowering, *scores, 2);
  const Touches p = touchesOf(lowering, *output, 1), v = touchesOf(lowering, *output, 2);
  for (unsigned row = 0; row < 32; ++row)
    for (unsigned key = 0; key < 64; ++key) {
      EXPECT_EQ(s.at((row * 64 + key) * 4), std::set<unsigned>({32 * (row / 8) + key % 32}));
      EXPECT_EQ(p.at((row * 64 + key) * 4), warp(row / 8));
    }
  for (unsigned key = 0; key < 64; ++key)
    for (unsigned column = 0; column < 64; ++column) {
      const unsigned byte = (key * 64 + column) * 2;
      EXPECT_EQ(k.at(byte), std::set<unsigned>({key % 32, 32 + key % 32, 64 + key % 32, 96 + key % 32}));
      const unsigned lane = column / 2;
      EXPECT_EQ(v.at(byte), std::set<unsigned>({lane, 32 + lane, 64 + lane, 96 + lane}));
    }
}

TEST(Access, PartialResultsAreStoredOnceAndReadByTheMergingThreads) {
  Lowering lowering({"merge", Mma::MmaSync, Copy::CpAsync, 16, 64, 4, 1, 64, 1, 4});
  lowering.lower();
  const Op *store = firstOp(lowering, OpKind::StorePartial), *merge = firstOp(lowering, OpKind::StoreMerged);
  const unsigned columns = 64 + 8;
  const Touches written = touchesOf(lowering, *store, 0), read = touchesOf(lowering, *merge, 2);
  ASSERT_EQ(written.size(), 4u * 16 * columns * 4);
  EXPECT_EQ(read.size(), 4u * 16 * (64 + 2) * 4);
  for (const auto &[byte, threads] : written)
    EXPECT_EQ(threads.size(), 1u);
  // Row 9 of key warp 2: lanes 4 to 7 of warp 2, columns 8 n + 2 (lane % 4) + {0, 1}; each its copy of m and l after.
  const unsigned row = (2 * 16 + 9) * columns;
  EXPECT_EQ(written.at((row + 11) * 4), std::set<unsigned>({64 + 4 + 1}));
  EXPECT_EQ(written.at((row + 64) * 4), std::set<unsigned>({64 + 4}));
  EXPECT_EQ(written.at((row + 71) * 4), std::set<unsigned>({64 + 7}));
  // Element pair 9 * 32 + 5 is that thread's modulo 128.
  EXPECT_EQ(read.at((row + 11) * 4), std::set<unsigned>({(9 * 32 + 5) % 128}));
}

TEST(Access, FootprintsMeetAsFarAsTheirThreads) {
  Lowering lowering({"scalar", Mma::Scalar, Copy::LdSt, 32, 64, 4, 1});
  lowering.lower();
  const Role &role = lowering.kernel.roles.front();
  const Op *scores = firstOp(lowering, OpKind::Mma, "abt"), *output = firstOp(lowering, OpKind::Mma, "ab");
  const Op *exp2 = firstOp(lowering, isPowers), *copy = firstOp(lowering, OpKind::CopyIssue);
  const Footprint written(lowering.kernel, role, *scores, 0), own(lowering.kernel, role, *exp2, 0);
  const Footprint broadcast(lowering.kernel, role, *output, 1), copied(lowering.kernel, role, *copy, 0);
  EXPECT_EQ(written.conflictWith(0, own, 0).scope, Scope::Thread);
  EXPECT_EQ(written.conflictWith(0, broadcast, 0).scope, Scope::Warp);
  EXPECT_EQ(written.conflictWith(0, copied, 0).scope, Scope::Cta);
  EXPECT_EQ(written.conflictWith(0, copied, written.bytes()).scope, Scope::None);
  EXPECT_EQ(written.conflictWith(0, copied, written.bytes() - 2).scope, Scope::Cta);
  EXPECT_EQ(written.conflictWith(0, own, 0).warps, 0xfu);
}

TEST(Access, FootprintsAreOfTheRolesOwnGrid) {
  Lowering lowering({"rows", Mma::MmaSync, Copy::CpAsync, 64, 64, 4, 1});
  lowering.lower();
  Role role = {"rows", 0, 4, {}, WarpGrid{4, 1}}, divided = {"divided", 0, 4, {}, WarpGrid{2, 2}};
  const Op *scores = firstOp(lowering, OpKind::Mma, "abt");
  const Footprint &q = footprintOf(lowering.kernel, role, *scores, MmaOp<>::kA);
  const Footprint &shared = footprintOf(lowering.kernel, divided, *scores, MmaOp<>::kA);
  EXPECT_NE(&q, &shared) << "where two warps have the same rows, each row is read by both";
}

/// Who meets on each byte, one after the other. Nobody knows the owner of what a range of several has.
Conflict meetingsOf(const Touches &mine, uint64_t base, const Touches &its, uint64_t otherBase) {
  Conflict found;
  for (const auto &[byte, threads] : mine) {
    const auto there = its.find(unsigned(base + byte - otherBase));
    if (there == its.end())
      continue;
    uint32_t warps = 0, others = 0;
    for (unsigned thread : threads)
      warps |= uint32_t(1) << thread / 32;
    for (unsigned thread : there->second)
      others |= uint32_t(1) << thread / 32;
    const bool isOneThread = threads.size() == 1 && threads == there->second;
    found.warps |= warps | others;
    found.scope = std::max(found.scope, isOneThread                            ? Scope::Thread
                                        : llvm::has_single_bit(warps | others) ? Scope::Warp
                                                                               : Scope::Cta);
    for (unsigned warp = 0; warp < kMaxWarps; ++warp)
      if (warps >> warp & 1 && !isOneThread)
        found.meets[warp] |= others;
  }
  return found;
}

TEST(Access, FootprintsMeetOnTheBytesThatTheirOpsShare) {
  for (unsigned vectorBytes : {2u, 16u})
    for (Mma mma : {Mma::MmaSync, Mma::Scalar, Mma::Wmma}) {
      Lowering lowering(
          {"meet", mma, Copy::LdSt, 32, 32, 2, 1, 64, 0, 1, OperandPlace::Shared, Reduce::Warp, vectorBytes});
      lowering.lower();
      const Role &role = lowering.kernel.roles.front();
      std::vector<std::pair<Footprint, Touches>> all;
      walk(lowering.body(), [&](const Op &op) {
        for (unsigned i = 0; i < op.operands.size() && all.size() < 8; ++i)
          if (op.operands[i].buffer && op.operands[i].buffer->space == Space::Shared)
            all.emplace_back(Footprint(lowering.kernel, role, op, i), touchesOf(lowering, op, i));
      });
      for (const auto &[first, mine] : all)
        for (const auto &[second, its] : all)
          for (uint64_t base : {0u, 2u, 1000u}) {
            const Conflict conflict = first.conflictWith(base, second, 128),
                           expected = meetingsOf(mine, base, its, 128);
            EXPECT_EQ(conflict.scope, expected.scope);
            EXPECT_EQ(conflict.warps, expected.warps);
            EXPECT_EQ(conflict.meets, expected.meets);
          }
    }
}

TEST(Access, NobodyKnowsWhichLaneHoldsAnElementOfWmma) {
  Lowering lowering({"wmma", Mma::Wmma, Copy::LdSt, 32, 64, 2, 1, 96});
  lowering.lower();
  const Role &role = lowering.kernel.roles.front();
  const Op *scores = firstOp(lowering, OpKind::Mma, "abt"), *product = firstOp(lowering, OpKind::Mma, "ab");
  const Op *convert = firstOp(lowering, OpKind::Convert), *accumulate = firstOp(lowering, isSum);
  unsigned bytes = 0;
  forEachAccess(lowering.kernel, role, *scores, 0, [&](ThreadRange threads, unsigned byte, unsigned count) {
    EXPECT_TRUE(threads.isUnknownOne);
    EXPECT_EQ(threads.count, 32u);
    EXPECT_EQ(threads.first, byte < 16 * (64 + 8) * 4 ? 0u : 32u); // a warp's rows, each with a gap after it
    bytes += count;
  });
  EXPECT_EQ(bytes, 32u * 64 * 4);

  // One lane of each element: the op does not meet itself. Whoever else comes, and the op again, meets the warp.
  const Footprint s(lowering.kernel, role, *scores, 0), pv(lowering.kernel, role, *product, 0);
  const Footprint read(lowering.kernel, role, *convert, 1), added(lowering.kernel, role, *accumulate, 1);
  EXPECT_FALSE(s.meetsItself());
  EXPECT_TRUE(Footprint(lowering.kernel, role, *product, 1).meetsItself()); // P, read by every lane
  EXPECT_EQ(s.conflictWith(0, s, 0).scope, Scope::Warp);
  EXPECT_EQ(s.conflictWith(0, read, 0).scope, Scope::Warp);
  EXPECT_EQ(pv.conflictWith(0, added, 0).scope, Scope::Warp);
  EXPECT_FALSE(added.meetsItself());
  const Touches touches = touchesOf(lowering, *accumulate, 1);
  for (unsigned row : {0u, 17u, 31u})
    for (unsigned column = 0; column < 96; ++column)
      EXPECT_EQ(touches.at((row * (96 + 8) + column) * 4), std::set<unsigned>({row / 16 * 32 + column / 2 % 32}));
}

} // namespace

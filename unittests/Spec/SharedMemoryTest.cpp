// fagen: tests of the shared-memory function: what lies beside what, and what lies over the ring.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Spec/SharedMemory.h"

#include "gtest/gtest.h"

using namespace fagen;

namespace {

Problem problem(unsigned qk, unsigned v) {
  Problem problem;
  problem.headDimQK = qk;
  problem.headDimV = v;
  return problem;
}

Schedule schedule(Mma mma, unsigned rows, unsigned keys, unsigned stages) {
  Schedule schedule;
  schedule.mma = mma;
  schedule.tileRows = rows;
  schedule.tileKeys = keys;
  schedule.stages = stages;
  return schedule;
}

TEST(SharedMemory, QBesideTheRing) {
  SharedMemory memory = computeSharedMemory(problem(64, 64), schedule(Mma::MmaSync, 256, 128, 3));
  EXPECT_EQ(memory.bytesOf("q"), 32768u);
  EXPECT_EQ(memory.bytesOf("k"), 49152u);
  EXPECT_EQ(memory.bytesOf("v"), 49152u);
  EXPECT_EQ(memory.total, 131072u);
}

TEST(SharedMemory, HeadDimsOfQKAndVDiffer) {
  SharedMemory memory = computeSharedMemory(problem(192, 128), schedule(Mma::MmaSync, 64, 32, 2));
  EXPECT_EQ(memory.bytesOf("q"), 64u * 192 * 2);
  EXPECT_EQ(memory.bytesOf("k"), 2u * 32 * 192 * 2);
  EXPECT_EQ(memory.bytesOf("v"), 2u * 32 * 128 * 2);
}

TEST(SharedMemory, QGoesThroughTheRingWhenTheCtaIsLarge) {
  Schedule registers = schedule(Mma::MmaSync, 128, 64, 1);
  registers.qIn = OperandPlace::Registers;
  EXPECT_EQ(computeSharedMemory(problem(64, 64), registers).total, 16384u + 16384); // Q, K + V: small enough
  registers.stages = 2;
  EXPECT_EQ(computeSharedMemory(problem(64, 64), registers).total, 49152u); // just so
  registers.stages = 3;
  EXPECT_EQ(computeSharedMemory(problem(64, 64), registers).total, 49152u); // Q over the 3 stages of K + V
  registers.tileRows = 512;                                                 // Q does not fit into K + V
  EXPECT_EQ(computeSharedMemory(problem(64, 64), registers).total, 65536u + 49152);
}

TEST(SharedMemory, QHasTwoSlotsWhereTheyFit) {
  Schedule persistent = schedule(Mma::Wgmma, 128, 128, 2);
  persistent.copy = Copy::Tma;
  EXPECT_EQ(countQuerySlots(problem(128, 128), persistent), 1u); // a CTA has one tile
  persistent.grid = Grid::Persistent;
  EXPECT_EQ(countQuerySlots(problem(128, 128), persistent), 2u);
  EXPECT_EQ(computeSharedMemory(problem(128, 128), persistent).bytesOf("q"), 2u * 32768);
  EXPECT_EQ(countQuerySlots(problem(64, 128), persistent), 1u); // O is wider than Q
  persistent.stages = 3;
  EXPECT_EQ(countQuerySlots(problem(128, 128), persistent), 1u); // 256 KiB
}

TEST(SharedMemory, HalfOfTheResultsHasAPlaceWhereQHasOneSlot) {
  Schedule persistent = schedule(Mma::Wgmma, 128, 64, 2);
  persistent.copy = Copy::Tma;
  EXPECT_EQ(countStagedColumns(problem(256, 256), persistent), 0u); // a CTA has one tile
  persistent.grid = Grid::Persistent;
  EXPECT_EQ(countStagedColumns(problem(256, 256), persistent), 128u);
  EXPECT_EQ(computeSharedMemory(problem(256, 256), persistent).bytesOf("out"), 32768u);
  EXPECT_EQ(countStagedColumns(problem(128, 128), persistent), 0u); // two slots of Q
  EXPECT_EQ(countStagedColumns(problem(96, 192), persistent), 0u);  // half is no multiple of a panel
  persistent.tileKeys = 80;
  EXPECT_EQ(countStagedColumns(problem(256, 256), persistent), 0u); // 256 KiB
}

TEST(SharedMemory, PartialResultsLieOverTheRing) {
  Schedule keys = schedule(Mma::MmaSync, 16, 64, 2);
  keys.keyWarps = 4;
  SharedMemory memory = computeSharedMemory(problem(64, 64), keys);
  EXPECT_EQ(memory.bytesOf("partial"), 4u * 16 * 72 * 4);
  EXPECT_EQ(memory.total, 2048u + 32768); // less than the ring
  keys.stages = 1;
  EXPECT_EQ(computeSharedMemory(problem(64, 64), keys).total, 2048u + 18432); // more than the ring
}

TEST(SharedMemory, ScalarKernelsKeepScores) {
  Schedule scalar = schedule(Mma::Scalar, 32, 64, 1);
  EXPECT_EQ(computeSharedMemory(problem(64, 64), scalar).total, 4096u + 8192 + 8192 + 8192);
  scalar.reduce = Reduce::Shared;
  EXPECT_EQ(computeSharedMemory(problem(64, 64), scalar).total, 4096u + 8192 + 8192 + 8192 + 32 * 32 * 4);
}

TEST(SharedMemory, EveryBufferBeginsAligned) {
  Schedule odd = schedule(Mma::Scalar, 1, 32, 1);
  EXPECT_EQ(computeSharedMemory(problem(8, 8), odd).total, 128u + 512 + 512 + 128);
}

} // namespace

// fagen: workspaces that the library lends, on a driver that only remembers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "FakeDriver.h"
#include "TestTable.h"

#include <fagen/fagen.hpp>
#include <gtest/gtest.h>
#include <set>
#include <thread>

using namespace fagen::test;

namespace {

CUstream_st *stream(uintptr_t number) { return reinterpret_cast<CUstream_st *>(number); }

bool isZero(const void *memory, size_t bytes) {
  const auto *begin = static_cast<const unsigned char *>(memory);
  return std::all_of(begin, begin + bytes, [](unsigned char byte) { return byte == 0; });
}

/// A choice whose workspace is a counter, or rows of as many bytes as the problem has rows.
struct WorkspacesTest : testing::Test {
  FakeDriver *fake = nullptr;
  fagen_device *device = nullptr;
  TestTable table{"k"};

  void SetUp() override {
    fake = openFakeDriver();
    ASSERT_NE(fake, nullptr) << "LD_LIBRARY_PATH must lead to the fake driver";
    ASSERT_EQ(fagen_device_create(0, &device), FAGEN_OK) << fagen_last_error();
    ASSERT_EQ(fagen_device_make_current(device), FAGEN_OK);
    static const fagen_op bytes[] = {{FAGEN_OP_VARIABLE, 0, FAGEN_VAR_SEQ_Q}};
    static const fagen_workspace part = {"counter", bytes, 1, 4};
    fagen_row row = makeRow("k");
    row.workspace = &part;
    row.workspace_count = 1;
    table.add(row);
  }
  void TearDown() override {
    fagen_device_destroy(device);
    EXPECT_TRUE(fake->memory.empty());
    EXPECT_EQ(fake->streams, 0);
    EXPECT_EQ(fake->captureMode, 0);
  }

  fagen_choice choose(int64_t bytes) {
    fagen_problem problem = makeProblem();
    problem.seq_q = bytes;
    fagen_choice choice = fagen_choice_init();
    const fagen_table *tables[] = {table.get()};
    EXPECT_EQ(fagen_query(tables, 1, &problem, device, &choice), FAGEN_OK) << fagen_last_error();
    EXPECT_EQ(choice.workspace_bytes, size_t(bytes));
    return choice;
  }
  /// Zeroed memory of one allocation.
  void *lend(int64_t bytes, CUstream_st *on) {
    const fagen_choice choice = choose(bytes);
    void *workspace = nullptr;
    EXPECT_EQ(fagen_lend_workspace(&choice, device, on, &workspace), FAGEN_OK) << fagen_last_error();
    const bool isWhole = std::any_of(fake->memory.begin(), fake->memory.end(), [&](const FakeMemory &memory) {
      return memory.holds(workspace) && memory.holds(static_cast<char *>(workspace) + bytes - 1);
    });
    EXPECT_TRUE(isWhole && isZero(workspace, size_t(bytes)));
    return workspace;
  }
};

TEST_F(WorkspacesTest, LaunchesOfAStreamShareOneAndStreamsDoNot) {
  void *first = lend(4, stream(0x10));
  EXPECT_EQ(lend(4, stream(0x10)), first);
  EXPECT_NE(lend(4, stream(0x20)), first);
  EXPECT_NE(lend(4, nullptr), first);
}

TEST_F(WorkspacesTest, AStreamsMemoryGrowsAndWhatItHadStays) {
  void *small = lend(1000, stream(0x10)), *large = lend(5000, stream(0x10));
  EXPECT_NE(large, small);
  const size_t before = fake->memory.size();
  lend(10, stream(0x10));
  EXPECT_EQ(fake->memory.size(), before);
  EXPECT_TRUE(isZero(small, 1000)); // not freed: a launch with it may be on its way
  lend(5200, stream(0x10));
  EXPECT_EQ(fake->memory.back().bytes, 2u * 5120); // of what had room for 5000
}

/// Launches of a stream leave anything in their scratch, and all of them count on zeros before it.
TEST_F(WorkspacesTest, WhatIsZeroIsNobodysScratch) {
  static const fagen_op counter[] = {{FAGEN_OP_VARIABLE, 0, FAGEN_VAR_SEQ_Q}},
                        parts[] = {{FAGEN_OP_VARIABLE, 0, FAGEN_VAR_SEQ_KV}};
  static const fagen_workspace both[] = {{"counter", counter, 1, 4}, {"parts", parts, 1, 256}};
  TestTable other{"k"};
  fagen_row row = makeRow("k");
  row.workspace = both;
  row.workspace_count = 2;
  row.scratch_parts = 1;
  other.add(row);
  for (const auto &[zeroed, scratch] : {std::pair{4, 3000}, {2000, 100}, {300, 9000}, {5000, 20000}, {8, 1}}) {
    fagen_problem problem = makeProblem();
    problem.seq_q = zeroed;
    problem.seq_kv = scratch;
    fagen_choice choice = fagen_choice_init();
    const fagen_table *tables[] = {other.get()};
    ASSERT_EQ(fagen_query(tables, 1, &problem, device, &choice), FAGEN_OK) << fagen_last_error();
    void *workspace = nullptr;
    ASSERT_EQ(fagen_lend_workspace(&choice, device, stream(0x10), &workspace), FAGEN_OK) << fagen_last_error();
    const size_t zeroes = fagen_choice_zero_bytes(&choice);
    EXPECT_GE(zeroes, size_t(zeroed));
    EXPECT_TRUE(isZero(workspace, zeroes)) << zeroed;
    memset(static_cast<char *>(workspace) + zeroes, 1, choice.workspace_bytes - zeroes);
  }
}

TEST_F(WorkspacesTest, EachCapturedLaunchHasASlotOfItsOwn) {
  void *eager = lend(4, stream(0x10));
  fake->capturing = {stream(0x10), stream(0x20)};
  std::set<void *> slots{eager};
  for (int launch = 0; launch < 600; ++launch) // two graphs on two streams; more than two pages hold
    EXPECT_TRUE(slots.insert(lend(4, stream(launch % 2 ? 0x10 : 0x20))).second);
  EXPECT_EQ(fake->memory.size(), 1u + 3u);
  fake->capturing.clear();
  EXPECT_EQ(lend(4, stream(0x10)), eager);
}

TEST_F(WorkspacesTest, SlotsDoNotOverlap) {
  fake->capturing = {stream(0x10)};
  std::set<unsigned char *> begins;
  for (int64_t bytes : {4, 300, 65536, 65537, 4, 40000, 40000, 1 << 20, 256, 257}) {
    auto *begin = static_cast<unsigned char *>(lend(bytes, stream(0x10)));
    memset(begin, 1, size_t(bytes)); // which the next one's check for zeros would find
    EXPECT_EQ(reinterpret_cast<uintptr_t>(begin) % 256, 0u);
    EXPECT_TRUE(begins.insert(begin).second);
  }
}

TEST_F(WorkspacesTest, ZeroingIsNoNodeOfTheGraph) {
  fake->capturing = {stream(0x10)};
  lend(4, stream(0x10));
  ASSERT_EQ(fake->zeroedOn.size(), 1u);
  EXPECT_NE(fake->zeroedOn[0], stream(0x10));
  EXPECT_NE(fake->zeroedOn[0], nullptr); // the legacy stream waits for those that capture
}

TEST_F(WorkspacesTest, TheStreamOfEachThreadIsAnother) {
  CUstream_st *const ofThread = stream(2);
  void *here = lend(4, ofThread), *there = nullptr;
  std::thread([&] {
    fagen_device_make_current(device);
    there = lend(4, ofThread);
  }).join();
  EXPECT_NE(here, there);
  EXPECT_EQ(lend(4, ofThread), here);
}

TEST_F(WorkspacesTest, ByTheWrapper) {
  fagen::Choice choice(choose(12), device);
  EXPECT_EQ(choice.lendWorkspace(stream(0x10)), lend(12, stream(0x10)));
}

TEST_F(WorkspacesTest, Refusals) {
  fagen_choice choice = choose(4);
  void *workspace = &choice;
  fake->failAllocation = 2;
  EXPECT_EQ(fagen_lend_workspace(&choice, device, nullptr, &workspace), FAGEN_OUT_OF_MEMORY);
  EXPECT_EQ(workspace, nullptr);
  EXPECT_STREQ(fagen_last_error(), "cannot allocate a workspace: CUDA_ERROR_OUT_OF_MEMORY (2): as the test asked");
  fake->failAllocation = 0;
  fake->current = &choice;
  EXPECT_EQ(fagen_lend_workspace(&choice, device, nullptr, &workspace), FAGEN_INVALID);
  fagen_device_make_current(device);
  EXPECT_EQ(fagen_lend_workspace(&choice, device, nullptr, nullptr), FAGEN_INVALID);
  EXPECT_EQ(fagen_lend_workspace(&choice, nullptr, nullptr, &workspace), FAGEN_INVALID);
  EXPECT_STREQ(fagen_last_error(), "the choice was made for another device");
  choice.workspace_bytes = 0;
  EXPECT_EQ(fagen_lend_workspace(&choice, device, nullptr, &workspace), FAGEN_OK);
  EXPECT_EQ(workspace, nullptr);
}

} // namespace

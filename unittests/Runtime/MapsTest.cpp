// fagen: what the driver's tensor maps cannot have, and which row is taken then.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "maps.h"
#include "TestTable.h"

#include <functional>
#include <gtest/gtest.h>

using namespace fagen;
using namespace fagen::test;

namespace {

constexpr int64_t kStrideEnd = int64_t(1) << 39; ///< elements of 2^40 bytes

/// A row with a map of K, and one for the tensors that it does not take.
struct Maps : testing::Test {
  Maps() {
    static const fagen_map map = {FAGEN_MAP_K, 64, 64, 128, 0};
    fagen_row row = makeRow("boxes");
    row.maps = &map;
    row.map_count = 1;
    alone.add(row);
    both.add(row);
    row = makeRow("unaligned");
    row.dispatch = FAGEN_ROW_FALLBACK;
    row.alignment = 2;
    both.add(row);
    problem.batch = 2;
  }
  void setStrides(int64_t batch, int64_t head, int64_t row) {
    problem.k_stride[0] = batch;
    problem.k_stride[1] = head;
    problem.k_stride[2] = row;
  }

  TestTable alone{"a"}, both{"b"};
  TestDevice device{89};
  fagen_problem problem = makeProblem();
};

TEST_F(Maps, StridesOf2To40BytesAreForAnotherRow) {
  for (int dimension : {0, 1, 2}) {
    setStrides(64, 64, 64);
    problem.seq_kv = 2;
    problem.k_stride[dimension] = kStrideEnd - 8;
    EXPECT_EQ(pick({both.get()}, problem, device), "boxes") << fagen_last_error();
    problem.k_stride[dimension] = kStrideEnd;
    EXPECT_EQ(pick({both.get()}, problem, device), "unaligned") << fagen_last_error();
    EXPECT_EQ(pick({alone.get()}, problem, device), "UNSUPPORTED");
    EXPECT_STREQ(fagen_last_error(), "no row for forward f16 head_dim 64, mask none fits: boxes cannot have a tensor "
                                     "map of k: a stride is 2^40 bytes or more");
  }
}

TEST_F(Maps, StridesThatNothingUsesDoNotMatter) {
  problem.batch = 1;
  problem.k_stride[0] = 3 * kStrideEnd + 1;
  problem.k_stride[1] = 64 * 512;
  problem.k_stride[2] = 64;
  EXPECT_EQ(pick({both.get()}, problem, device), "boxes") << fagen_last_error();
  problem.heads = problem.kv_heads = 0; // nothing is launched: no map is made
  EXPECT_EQ(pick({both.get()}, problem, device), "boxes") << fagen_last_error();
}

TEST_F(Maps, BroadcastTensorsHaveStridesOfZero) {
  setStrides(0, 0, 64);
  const QueriedRow queried(alone.get()->rows[0], problem, device);
  ASSERT_EQ(queried.status, FAGEN_OK) << fagen_last_error();
  device::AttentionParams params = {};
  params.batch = 2, params.heads = params.kv_heads = 8, params.seq_q = params.seq_kv = 512;
  params.k_stride[2] = 64;
  const device::TensorMapDescription d = describeMap(*queried.choice.row, queried.choice.row->maps[0], params);
  EXPECT_EQ(d.strides[1], 128u);
  EXPECT_EQ(d.strides[2], 0u); // as many heads as ever, all in one place
  EXPECT_EQ(d.sizes[2], 8u);
  EXPECT_EQ(d.strides[3], 0u);
  EXPECT_EQ(d.sizes[3], 2u);
}

TEST_F(Maps, EveryRuleOfTheDriver) {
  const struct {
    const char *refusal;
    std::function<void(device::TensorMapDescription &)> change;
  } rules[] = {
      {nullptr, [](auto &) {}},
      {nullptr, [](auto &d) { d.strides[1] = 0; }},
      {nullptr, [](auto &d) { d.box[1] = 256; }},
      {nullptr, [](auto &d) { d.sizes[1] = UINT32_MAX; }},
      {nullptr, [](auto &d) { d.strides[3] = (uint64_t(1) << 40) - 16; }},
      {"its address is not a multiple of 16 bytes", [](auto &d) { d.base = reinterpret_cast<void *>(0x1008); }},
      {"it has not 1 to 5 dimensions", [](auto &d) { d.rank = 6; }},
      {"rows of its box are not multiples of 16 bytes, or longer than the swizzle", [](auto &d) { d.box[0] = 60; }},
      {"rows of its box are not multiples of 16 bytes, or longer than the swizzle", [](auto &d) { d.box[0] = 72; }},
      {"a dimension has no elements", [](auto &d) { d.sizes[2] = 0; }},
      {"a side of its box is not 1 to 256 elements", [](auto &d) { d.box[1] = 257; }},
      {"a side of its box is not 1 to 256 elements", [](auto &d) { d.box[3] = 0; }},
      {"a stride is not a multiple of 16 bytes", [](auto &d) { d.strides[2] = 24; }},
      {"a stride is 2^40 bytes or more", [](auto &d) { d.strides[3] = uint64_t(1) << 40; }},
  };
  const fagen_row &row = alone.get()->rows[0];
  device::AttentionParams params = {};
  params.batch = params.heads = params.kv_heads = params.seq_q = params.seq_kv = 2;
  params.k_stride[0] = params.k_stride[1] = params.k_stride[2] = 64;
  for (const auto &rule : rules) {
    device::TensorMapDescription d = describeMap(row, row.maps[0], params);
    rule.change(d);
    EXPECT_STREQ(refusalOf(d), rule.refusal);
  }
}

TEST_F(Maps, RowsWithMapsAreAligned) {
  fagen_row row = alone.get()->rows[0];
  row.alignment = 8;
  TestTable table("k");
  EXPECT_EQ(fagen_table_check(table.add(row).get()), FAGEN_INVALID);
  EXPECT_STREQ(fagen_last_error(), "table k, row 0 (boxes): alignment is not a power of two, or below the 16 that "
                                   "tensor maps need");
}

} // namespace

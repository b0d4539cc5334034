// fagen: every size that a caller's struct may claim: those that end within a field are of no version.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TestTable.h"

#include <cstring>
#include <gtest/gtest.h>
#include <set>

using namespace fagen::test;

namespace {

/// Where fields end; padding after one counts as part of none.
using Inside = std::set<uint32_t>; ///< sizes that end within a field

template <typename Struct> void addInside(Inside &inside, size_t begin, size_t bytes) {
  for (size_t size = begin + 1; size < begin + bytes && size < sizeof(Struct); ++size)
    inside.insert(uint32_t(size));
}
#define INSIDE(inside, type, field) addInside<type>(inside, offsetof(type, field), sizeof(type::field))

constexpr auto kRefused = "ends within a field";

/// What each size from 0 on gives: refused below `least` and within fields, else `status`. `call` takes the size.
template <typename Struct, typename Call>
void checkSizes(uint32_t least, const Inside &inside, fagen_status status, Call call) {
  for (uint32_t size = 0; size <= sizeof(Struct) + 16; ++size) {
    const bool isRefused = size < least || inside.count(size);
    EXPECT_EQ(call(size), isRefused ? FAGEN_INVALID : status) << size << ": " << fagen_last_error();
    if (size >= least && inside.count(size)) {
      EXPECT_NE(strstr(fagen_last_error(), kRefused), nullptr) << size << ": " << fagen_last_error();
    }
  }
}

struct StructSizes : testing::Test {
  TestTable table{"k"};
  TestDevice device{89};
  const fagen_table *tables[1];
  fagen_problem problem = makeProblem();
  fagen_choice choice = fagen_choice_init();

  StructSizes() { tables[0] = table.add(makeRow("row")).get(); }
  fagen_status query() { return fagen_query(tables, 1, &problem, device, &choice); }
};

TEST_F(StructSizes, OfProblems) {
  Inside inside;
  INSIDE(inside, fagen_problem, pass), INSIDE(inside, fagen_problem, dtype), INSIDE(inside, fagen_problem, mask);
  INSIDE(inside, fagen_problem, flags), INSIDE(inside, fagen_problem, batch), INSIDE(inside, fagen_problem, heads);
  INSIDE(inside, fagen_problem, kv_heads), INSIDE(inside, fagen_problem, seq_q), INSIDE(inside, fagen_problem, seq_kv);
  INSIDE(inside, fagen_problem, head_dim_qk), INSIDE(inside, fagen_problem, head_dim_v);
  INSIDE(inside, fagen_problem, q_stride), INSIDE(inside, fagen_problem, k_stride);
  INSIDE(inside, fagen_problem, v_stride), INSIDE(inside, fagen_problem, o_stride);
  INSIDE(inside, fagen_problem, lse_stride), INSIDE(inside, fagen_problem, scale);
  INSIDE(inside, fagen_problem, has_scale), INSIDE(inside, fagen_problem, alignment);
  INSIDE(inside, fagen_problem, variant), INSIDE(inside, fagen_problem, form), INSIDE(inside, fagen_problem, args);
  INSIDE(inside, fagen_problem, arg_count), INSIDE(inside, fagen_problem, kv_dtype);
  // A size that ends before head_dim_qk leaves out what a problem must give: another refusal.
  checkSizes<fagen_problem>(offsetof(fagen_problem, head_dim_v), inside, FAGEN_OK, [&](uint32_t size) {
    struct {
      fagen_problem problem;
      char later[16];
    } larger = {makeProblem(), {}};
    larger.problem.struct_size = size;
    return fagen_query(tables, 1, &larger.problem, device, &choice);
  });
  problem.struct_size = 220; // half of form: no pointer that may be read
  problem.form = "nobody";
  EXPECT_EQ(query(), FAGEN_INVALID);
  EXPECT_STREQ(fagen_last_error(), "fagen_problem.struct_size is 220, which ends within a field; set it to "
                                   "sizeof(fagen_problem): 240");
}

TEST_F(StructSizes, OfChoices) {
  Inside inside;
  INSIDE(inside, fagen_choice, scratch_bytes);
  checkSizes<fagen_choice>(offsetof(fagen_choice, scratch_bytes), inside, FAGEN_OK, [&](uint32_t size) {
    choice.struct_size = size;
    return query();
  });
}

TEST_F(StructSizes, OfTensors) {
  ASSERT_EQ(query(), FAGEN_OK);
  auto pointer = [](uintptr_t address) { return reinterpret_cast<void *>(address); };
  fagen_tensors tensors = fagen_tensors_init();
  tensors.q = pointer(0x100), tensors.k = pointer(0x200), tensors.v = pointer(0x300), tensors.o = pointer(0x400);
  Inside inside;
  INSIDE(inside, fagen_tensors, args), INSIDE(inside, fagen_tensors, arg_count);
  INSIDE(inside, fagen_tensors, reserved);
  checkSizes<fagen_tensors>(offsetof(fagen_tensors, args), inside, FAGEN_NOT_PREPARED, [&](uint32_t size) {
    tensors.struct_size = size;
    return fagen_run(&choice, &tensors, nullptr, 0, nullptr);
  });
  tensors.struct_size = sizeof(tensors);
  tensors.reserved = 5;
  EXPECT_EQ(fagen_run(&choice, &tensors, nullptr, 0, nullptr), FAGEN_INVALID);
  EXPECT_STREQ(fagen_last_error(), "fagen_tensors.reserved is 5; it must be 0");
}

TEST_F(StructSizes, OfInformation) {
  ASSERT_EQ(query(), FAGEN_OK);
  checkSizes<fagen_device_info>(sizeof(fagen_device_info), {}, FAGEN_OK, [&](uint32_t size) {
    fagen_device_info info = fagen_device_info_init();
    info.struct_size = size;
    return fagen_device_get_info(device, &info);
  });
  checkSizes<fagen_choice_info>(sizeof(fagen_choice_info), {}, FAGEN_OK, [&](uint32_t size) {
    fagen_choice_info info = fagen_choice_info_init();
    info.struct_size = size;
    return fagen_choice_get_info(&choice, &info);
  });
}

TEST_F(StructSizes, OfTables) {
  Inside inside;
  INSIDE(inside, fagen_table, claim), INSIDE(inside, fagen_table, claim_text), INSIDE(inside, fagen_table, claim_size);
  INSIDE(inside, fagen_table, reserved), INSIDE(inside, fagen_table, forms), INSIDE(inside, fagen_table, form_count);
  INSIDE(inside, fagen_table, form_size);
  fagen_table other = *table.get();
  checkSizes<fagen_table>(offsetof(fagen_table, claim), inside, FAGEN_OK, [&](uint32_t size) {
    other.struct_size = size;
    return fagen_table_check(&other);
  });
}

TEST_F(StructSizes, OfRows) {
  fagen_table other = *table.get();
  for (uint32_t size = 0; size < sizeof(fagen_row) + 64; ++size) {
    other.row_size = size;
    const bool isWhole = size == offsetof(fagen_row, shared_tiles) || size == offsetof(fagen_row, shared_tiles_size) ||
                         size == offsetof(fagen_row, recipe) ||
                         (size >= sizeof(fagen_row) && size % alignof(fagen_row) == 0);
    EXPECT_EQ(fagen_table_check(&other), isWhole ? FAGEN_OK : FAGEN_INVALID) << size << ": " << fagen_last_error();
  }
}

TEST_F(StructSizes, WhatIsReservedIsZero) {
  problem.kv_dtype = 5;
  EXPECT_EQ(query(), FAGEN_INVALID);
  EXPECT_STREQ(fagen_last_error(), "kv_dtype is 5 and dtype 1; K and V have Q's elements, or next to f16 (1) and bf16 (2) those of e4m3 (3) or e5m2 (8)");
}

} // namespace

// fagen: what a program's launches get of a call: argument, maps, grids; on a driver that only remembers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "FakeDriver.h"
#include "TestRecipe.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace fagen::test;

namespace {

struct ProgramLaunches : testing::Test {
  FakeDriver &driver = *openFakeDriver();
  fagen_device *device = nullptr;
  static constexpr unsigned char kImage[4] = {};
  fagen_binary binary = {FAGEN_BINARY_CUBIN, 89, 0, 0, kImage, sizeof(kImage)};
  fagen_code code = {nullptr, "sm_89/gemm.cu", &binary, 1};
  TestRecipe recipe;
  TestTable table{"k"};
  TestCall made;
  fagen_choice choice = fagen_choice_init();
  alignas(256) unsigned char workspace[8192] = {};

  void SetUp() override {
    ASSERT_EQ(fagen_device_create(0, &device), FAGEN_OK) << fagen_last_error();
    fagen_row row = recipe.row();
    row.code = &code;
    row.dependent_launches = 2;
    const fagen_table *tables[] = {table.add(row).get()};
    ASSERT_EQ(fagen_table_check(tables[0]), FAGEN_OK) << fagen_last_error();
    ASSERT_EQ(fagen_query_program(tables, 1, &made.call, device, &choice), FAGEN_OK) << fagen_last_error();
    ASSERT_EQ(fagen_prepare(&choice, device), FAGEN_OK) << fagen_last_error();
    ASSERT_EQ(fagen_device_make_current(device), FAGEN_OK);
  }
  void TearDown() override { fagen_device_destroy(device); }

  fagen_status run(size_t bytes = sizeof(workspace)) {
    return fagen_run_program(&choice, &made.call, workspace, bytes, nullptr);
  }
  template <typename T> T argument(size_t launch, size_t offset) const {
    T value;
    std::memcpy(&value, reinterpret_cast<const char *>(&driver.launches[launch].params) + offset, sizeof(value));
    return value;
  }
};

TEST_F(ProgramLaunches, FollowTheRecipe) {
  made.call.flags = FAGEN_FLAG_PDL;
  ASSERT_EQ(run(), FAGEN_OK) << fagen_last_error();
  ASSERT_EQ(driver.launches.size(), 2u);
  EXPECT_EQ(driver.launches[0].symbol, "multiply");
  EXPECT_EQ(driver.launches[0].grid, 120u);
  EXPECT_EQ(driver.launches[0].threads, 128u);
  EXPECT_EQ(driver.launches[0].sharedBytes, 50000u);
  EXPECT_FALSE(driver.launches[0].beginsEarly);
  EXPECT_EQ(driver.launches[1].symbol, "add");
  EXPECT_EQ(driver.launches[1].grid, 58u); // SMs
  EXPECT_TRUE(driver.launches[1].beginsEarly);
  for (size_t launch : {0, 1}) {
    EXPECT_EQ(argument<void *>(launch, 256), made.memory);
    EXPECT_EQ(argument<void *>(launch, 264), workspace + 256); // after the counter, which is zero
    EXPECT_EQ(argument<void *>(launch, 272), workspace);
    EXPECT_EQ(argument<int64_t>(launch, 280), 48);
    EXPECT_EQ(argument<int32_t>(launch, 288), 300);
    EXPECT_EQ(argument<float>(launch, 292), 0.5f);
  }
}

TEST_F(ProgramLaunches, MapsHaveTheCallersStrides) {
  ASSERT_EQ(run(), FAGEN_OK) << fagen_last_error();
  ASSERT_EQ(driver.maps.size(), 2u);
  EXPECT_EQ(driver.maps[0].type, 6); // f16
  EXPECT_EQ(driver.maps[0].swizzle, 3);
  EXPECT_EQ(driver.maps[0].sizes, (std::vector<uint64_t>{64, 300}));
  EXPECT_EQ(driver.maps[0].strides, (std::vector<uint64_t>{128}));
  EXPECT_EQ(driver.maps[0].box, (std::vector<uint32_t>{64, 128}));
  EXPECT_EQ(driver.maps[1].type, 2); // 4 bytes
  EXPECT_EQ(driver.maps[1].sizes, (std::vector<uint64_t>{40, 300}));
  EXPECT_EQ(driver.maps[1].strides, (std::vector<uint64_t>{48 * 4}));
}

TEST_F(ProgramLaunches, TakeOtherSizesThanTheQuery) {
  made.tensors[0].extent[0] = made.tensors[2].extent[0] = made.tensors[3].extent[0] = 20;
  ASSERT_EQ(run(), FAGEN_OK) << fagen_last_error();
  EXPECT_EQ(driver.launches[0].grid, 40u);
  EXPECT_EQ(driver.launches[1].grid, 20u);
  driver.launches.clear();
  made.tensors[0].extent[0] = made.tensors[2].extent[0] = made.tensors[3].extent[0] = 0; // no row: no launch
  for (fagen_named_tensor &tensor : made.tensors)
    tensor.data = tensor.name == std::string("b") ? tensor.data : nullptr;
  ASSERT_EQ(run(), FAGEN_OK) << fagen_last_error();
  EXPECT_TRUE(driver.launches.empty());
}

TEST_F(ProgramLaunches, WhatIsWrongIsSaid) {
  EXPECT_EQ(run(100), FAGEN_WORKSPACE);
  EXPECT_STREQ(fagen_last_error(), "gemm needs a workspace of 4096 B; it got 100 B");
  made.tensors[0].data = made.memory + 2;
  EXPECT_EQ(run(), FAGEN_MISALIGNED);
  EXPECT_NE(strstr(fagen_last_error(), "gemm: tensor 'a' is at "), nullptr) << fagen_last_error();
  made.tensors[0].data = nullptr;
  EXPECT_EQ(run(), FAGEN_INVALID);
  EXPECT_STREQ(fagen_last_error(), "gemm: data of tensor 'a' is NULL; it has 19200 elements");
  made.tensors[0].data = made.memory;
  made.tensors[3].rank = 0;
  EXPECT_EQ(run(), FAGEN_INVALID);
  EXPECT_STREQ(fagen_last_error(), "gemm: tensor 'c' has no extents (rank is 0); fagen_query_program fills them in");
  made.tensors[3].rank = 2;
  made.call.program = "other";
  EXPECT_EQ(run(), FAGEN_INVALID);
  EXPECT_STREQ(fagen_last_error(), "the choice is of program gemm, and the call of 'other'");
  fagen_tensors tensors = fagen_tensors_init();
  EXPECT_EQ(fagen_run(&choice, &tensors, nullptr, 0, nullptr), FAGEN_INVALID);
  EXPECT_STREQ(fagen_last_error(), "the choice is of program gemm; fagen_run_program runs it");
  driver.failLaunch = 700;
  made.call.program = nullptr;
  EXPECT_EQ(run(), FAGEN_CUDA);
  driver.failMap = 1;
  EXPECT_EQ(run(), FAGEN_CUDA);
  EXPECT_TRUE(driver.launches.empty());
}

} // namespace

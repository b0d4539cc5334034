// fagen: what prepare and run ask of the CUDA driver, on one that only remembers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "FakeDriver.h"
#include "TestForms.h"
#include "TestTable.h"
#include "compile/nvrtc.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace fagen::test;

namespace {

const char kCubin89[] = "cubin 89", kCubin80[] = "cubin 80", kPtx[] = "ptx";
const fagen_binary kBinaries[] = {{FAGEN_BINARY_PTX, 80, 0, 0, kPtx, sizeof(kPtx)},
                                  {FAGEN_BINARY_CUBIN, 80, 0, 0, kCubin80, sizeof(kCubin80)},
                                  {FAGEN_BINARY_CUBIN, 89, 0, 0, kCubin89, sizeof(kCubin89)},
                                  {FAGEN_BINARY_CUBIN, 90, 0, 0, kCubin80, sizeof(kCubin80)}};

void *pointer(uintptr_t address) { return reinterpret_cast<void *>(address); }

struct DriverTest : testing::Test {
  FakeDriver *fake = nullptr;
  fagen_device *device = nullptr;
  fagen_code code = {nullptr, "k.cu", kBinaries, 4};
  fagen_row row = makeRow("k");
  std::deque<TestTable> tables; // a table must outlive the device
  fagen_problem problem = makeProblem();
  fagen_choice choice = fagen_choice_init();
  fagen_tensors tensors = fagen_tensors_init();

  void SetUp() override {
    fake = openFakeDriver();
    ASSERT_NE(fake, nullptr) << "LD_LIBRARY_PATH must lead to the fake driver";
    ASSERT_EQ(fagen_device_create(0, &device), FAGEN_OK) << fagen_last_error();
    ASSERT_EQ(fagen_device_make_current(device), FAGEN_OK);
    row.code = &code;
    tensors.q = pointer(0x1000);
    tensors.k = pointer(0x2000);
    tensors.v = pointer(0x3000);
    tensors.o = pointer(0x4000);
    tensors.lse = static_cast<float *>(pointer(0x5000));
  }
  void TearDown() override {
    fagen_device_destroy(device);
    EXPECT_EQ(fake->modules, 0);
    EXPECT_EQ(fake->retained, 0);
  }

  fagen_status prepare() {
    const fagen_table *table = tables.emplace_back("k").add(row).get();
    EXPECT_EQ(fagen_query(&table, 1, &problem, device, &choice), FAGEN_OK) << fagen_last_error();
    fagen_status status = fagen_prepare(&choice, device);
    fagen_device_make_current(device); // the fake keeps no stack
    return status;
  }
};

TEST_F(DriverTest, LaunchGetsEverything) {
  problem.batch = 2;
  problem.kv_heads = 2;
  problem.seq_q = 300;
  row.launches[0].shared_bytes = 96 * 1024;
  ASSERT_EQ(prepare(), FAGEN_OK) << fagen_last_error();
  EXPECT_EQ(fake->attributes, std::vector<std::string>{"k: max dynamic shared = 98304"});
  ASSERT_EQ(fagen_run(&choice, &tensors, nullptr, 0, static_cast<CUstream_st *>(pointer(0x77))), FAGEN_OK)
      << fagen_last_error();
  ASSERT_EQ(fake->launches.size(), 1u);
  const FakeLaunch &launch = fake->launches[0];
  EXPECT_EQ(launch.symbol, "k");
  EXPECT_EQ(launch.grid, 3u * 8u * 2u);
  EXPECT_EQ(launch.threads, 128u);
  EXPECT_EQ(launch.sharedBytes, 98304u);
  EXPECT_EQ(launch.stream, pointer(0x77));
  EXPECT_EQ(launch.params.q, tensors.q);
  EXPECT_EQ(launch.params.k, tensors.k);
  EXPECT_EQ(launch.params.v, tensors.v);
  EXPECT_EQ(launch.params.o, tensors.o);
  EXPECT_EQ(launch.params.lse, tensors.lse);
  EXPECT_EQ(launch.params.heads_per_kv, 4);
  EXPECT_EQ(launch.params.q_stride[1], 300 * 64);
  EXPECT_EQ(launch.params.scale, 0.125f);
}

TEST_F(DriverTest, FormsFollowTheParameters) {
  const std::vector<fagen_arg> args = {number("n", 3), tensor("a", 0x100), tensor("sees", 0x200),
                                       tensor("half", 0x302)};
  const fagen_problem formed = formProblem("doc", args);
  row.mask = FAGEN_MASK_FORM_0;
  TestTable &table = tables.emplace_back("k");
  table.forms({makeForm("doc", "doc", kTensors)}).add(row);
  const fagen_table *one = table.get();
  ASSERT_EQ(fagen_query(&one, 1, &formed, device, &choice), FAGEN_OK) << fagen_last_error();
  ASSERT_EQ(fagen_prepare(&choice, device), FAGEN_OK) << fagen_last_error();
  fagen_device_make_current(device); // the fake keeps no stack
  const std::vector<fagen_arg> run = {tensor("a", 0x500)};
  tensors.args = run.data();
  tensors.arg_count = 1;
  ASSERT_EQ(fagen_run(&choice, &tensors, nullptr, 0, nullptr), FAGEN_OK) << fagen_last_error();
  const FakeLaunch &launch = fake->launches.at(0);
  EXPECT_EQ(launch.params.q, tensors.q);
  const std::vector<uint64_t> form(launch.form.begin(), launch.form.begin() + 11);
  EXPECT_EQ(form, (std::vector<uint64_t>{0, 3, 0x500, 3, 1, 0x200, 512 * 16, 16, 1, 0x302, 1}));
  tensors.args = nullptr;
  EXPECT_EQ(fagen_run(&choice, &tensors, nullptr, 0, nullptr), FAGEN_INVALID);
}

const fagen_map kMaps[] = {{FAGEN_MAP_K, 64, 128, 128, 0}, {FAGEN_MAP_O, 32, 64, 64, 0}};

TEST_F(DriverTest, MapsAreEncodedIntoEachLaunchsParameters) {
  row.maps = kMaps;
  row.map_count = 2;
  row.dtype = problem.dtype = FAGEN_DTYPE_BF16;
  problem.batch = 2;
  problem.heads = 8;
  problem.kv_heads = 2;
  problem.seq_q = 300;
  problem.seq_kv = 77;
  ASSERT_EQ(prepare(), FAGEN_OK) << fagen_last_error();
  for (int call = 0; call < 2; ++call)
    ASSERT_EQ(fagen_run(&choice, &tensors, nullptr, 0, nullptr), FAGEN_OK) << fagen_last_error();
  ASSERT_EQ(fake->maps.size(), 4u);
  const FakeMap &k = fake->maps[0], &o = fake->maps[1];
  EXPECT_EQ(k.base, tensors.k);
  EXPECT_EQ(k.type, 9);
  EXPECT_EQ(k.swizzle, 3);
  EXPECT_EQ(k.fill, 0);
  EXPECT_EQ(k.sizes, (std::vector<uint64_t>{64, 77, 2, 2}));
  EXPECT_EQ(k.strides, (std::vector<uint64_t>{128, 77 * 128, 2 * 77 * 128}));
  EXPECT_EQ(k.box, (std::vector<uint32_t>{64, 128, 1, 1}));
  EXPECT_EQ(o.base, tensors.o);
  EXPECT_EQ(o.swizzle, 2);
  EXPECT_EQ(o.sizes, (std::vector<uint64_t>{64, 300, 8, 2}));
  EXPECT_EQ(o.box, (std::vector<uint32_t>{32, 64, 1, 1}));
  // The fake fills the n-th map with the n-th letter; each launch has its own.
  EXPECT_EQ(fake->launches[0].params.k_map.words[15], 0x4141414141414141u);
  EXPECT_EQ(fake->launches[0].params.o_map.words[0], 0x4242424242424242u);
  EXPECT_EQ(fake->launches[1].params.k_map.words[0], 0x4343434343434343u);
  EXPECT_EQ(fake->launches[1].params.q, tensors.q);
}

TEST_F(DriverTest, PanelsOfABoxAreADimension) {
  static const fagen_map map = {FAGEN_MAP_K, 32, 128, 64, 2};
  row.maps = &map;
  row.map_count = 1;
  problem.batch = 2;
  problem.kv_heads = 2;
  problem.seq_kv = 77;
  ASSERT_EQ(prepare(), FAGEN_OK) << fagen_last_error();
  ASSERT_EQ(fagen_run(&choice, &tensors, nullptr, 0, nullptr), FAGEN_OK) << fagen_last_error();
  ASSERT_EQ(fake->maps.size(), 1u);
  const FakeMap &k = fake->maps[0];
  EXPECT_EQ(k.sizes, (std::vector<uint64_t>{32, 77, 2, 2, 2}));
  EXPECT_EQ(k.strides, (std::vector<uint64_t>{128, 64, 77 * 128, 2 * 77 * 128}));
  EXPECT_EQ(k.box, (std::vector<uint32_t>{32, 128, 2, 1, 1}));
}

TEST_F(DriverTest, MapsOfTensorsWithoutRowsOrWithJunkStrides) {
  row.maps = kMaps;
  row.map_count = 1;
  problem.seq_kv = 0;
  problem.batch = 1;
  tensors.k = tensors.v = nullptr;
  ASSERT_EQ(prepare(), FAGEN_OK) << fagen_last_error();
  ASSERT_EQ(fagen_run(&choice, &tensors, nullptr, 0, nullptr), FAGEN_OK) << fagen_last_error();
  ASSERT_EQ(fake->maps.size(), 1u);
  EXPECT_EQ(fake->maps[0].base, tensors.q);
  EXPECT_EQ(fake->maps[0].sizes[1], 1u);
  EXPECT_EQ(fake->maps[0].strides[0], 16u); // of one row: any multiple of 16
  EXPECT_EQ(fake->maps[0].strides[2], 16u);
}

/// Whatever fagen_query says yes to can be launched: strides around each rule of the driver, on each dimension.
TEST_F(DriverTest, WhatQueryAcceptsCanBeEncoded) {
  row.maps = kMaps;
  row.map_count = 2;
  problem.batch = problem.heads = problem.kv_heads = 2;
  problem.seq_kv = 3;
  ASSERT_EQ(prepare(), FAGEN_OK) << fagen_last_error();
  const fagen_table *table = tables.back().get();
  const int64_t end = int64_t(1) << 39; // elements of 2^40 bytes
  unsigned accepted = 0;
  for (int64_t batch : {int64_t(0), int64_t(64), end - 8, end - 4, end, 4 * end})
    for (int64_t head : {int64_t(0), int64_t(8), end - 8, end})
      for (int64_t rowStride : {int64_t(0), int64_t(64), int64_t(68), end - 8, end}) {
        problem.k_stride[0] = batch, problem.k_stride[1] = head, problem.k_stride[2] = rowStride;
        choice = fagen_choice_init();
        if (fagen_query(&table, 1, &problem, device, &choice))
          continue;
        ++accepted;
        EXPECT_EQ(fagen_run(&choice, &tensors, nullptr, 0, nullptr), FAGEN_OK)
            << batch << ", " << head << ", " << rowStride << ": " << fagen_last_error();
      }
  EXPECT_EQ(accepted, 3u * 3 * 3);
}

TEST_F(DriverTest, RefusedMapIsNamed) {
  row.maps = kMaps;
  row.map_count = 2;
  ASSERT_EQ(prepare(), FAGEN_OK) << fagen_last_error();
  fake->failMap = 1;
  EXPECT_EQ(fagen_run(&choice, &tensors, nullptr, 0, nullptr), FAGEN_CUDA);
  EXPECT_STREQ(fagen_last_error(), "cannot encode the tensor map of k: CUDA_ERROR_FAKE (1): as the test asked");
  EXPECT_TRUE(fake->launches.empty());
}

TEST_F(DriverTest, SplitKeysAreTwoLaunches) {
  static const fagen_op bytes[] = {
      {FAGEN_OP_VARIABLE, 0, FAGEN_VAR_SPLITS}, {FAGEN_OP_CONSTANT, 0, 64}, {FAGEN_OP_MUL, 0, 0}};
  static const fagen_workspace part = {"splits", bytes, 3, 16};
  problem.seq_q = 300;
  row.launch_count = 2;
  row.launches[0].grid = FAGEN_GRID_SPLITS;
  row.launches[0].reserved = 5;
  row.launches[1] = {"k_combine", FAGEN_GRID_ROWS, 128, 0, 0};
  row.workspace = &part;
  row.workspace_count = 1;
  ASSERT_EQ(prepare(), FAGEN_OK) << fagen_last_error();
  EXPECT_EQ(choice.workspace_bytes, 5u * 64);
  EXPECT_EQ(fagen_run(&choice, &tensors, nullptr, 0, nullptr), FAGEN_WORKSPACE);
  ASSERT_EQ(fagen_run(&choice, &tensors, pointer(0x6000), 5 * 64, static_cast<CUstream_st *>(pointer(0x77))), FAGEN_OK)
      << fagen_last_error();
  ASSERT_EQ(fake->launches.size(), 2u);
  EXPECT_EQ(fake->launches[0].symbol, "k");
  EXPECT_EQ(fake->launches[0].grid, 3u * 8u * 5u);
  EXPECT_EQ(fake->launches[1].symbol, "k_combine");
  EXPECT_EQ(fake->launches[1].grid, 300u * 8u / 4u);
  for (const FakeLaunch &launch : fake->launches) {
    EXPECT_EQ(launch.params.splits, 5);
    EXPECT_EQ(launch.params.workspace, pointer(0x6000));
    EXPECT_EQ(launch.stream, pointer(0x77));
  }
}

/// What classifies key tiles comes first, wherever it stands, and what it left is zeroed after the others.
TEST_F(DriverTest, KeyTilesAreClassifiedBefore) {
  static const fagen_op one[] = {{FAGEN_OP_CONSTANT, 0, 4}}, many[] = {{FAGEN_OP_CONSTANT, 0, 64}};
  static const fagen_workspace parts[] = {{"counter", one, 1, 4}, {"sights", many, 1, 16}};
  row.launch_count = 2;
  row.launches[1] = {"k_key_tiles", FAGEN_GRID_KEY_TILES, 128, 0, 0};
  row.workspace = parts;
  row.workspace_count = 2;
  row.scratch_parts = 1;
  ASSERT_EQ(prepare(), FAGEN_OK) << fagen_last_error();
  ASSERT_EQ(choice.workspace_bytes, 80u);
  alignas(16) unsigned char workspace[96];
  memset(workspace, 0xFF, sizeof(workspace));
  ASSERT_EQ(fagen_run(&choice, &tensors, workspace, 80, static_cast<CUstream_st *>(pointer(0x77))), FAGEN_OK)
      << fagen_last_error();
  ASSERT_EQ(fake->launches.size(), 2u);
  EXPECT_EQ(fake->launches[0].symbol, "k_key_tiles");
  EXPECT_EQ(fake->launches[0].grid, FAGEN_KEY_TILE_CTAS * fake->launches[1].grid);
  EXPECT_EQ(fake->launches[1].symbol, "k");
  EXPECT_EQ(fake->zeroedOn, std::vector<void *>{pointer(0x77)});
  EXPECT_EQ(workspace[3], 0xFF); // a counter is the kernel's
  EXPECT_TRUE(std::all_of(workspace + 4, workspace + 80, [](unsigned char byte) { return byte == 0; }));
  EXPECT_EQ(workspace[80], 0xFF);
}

TEST_F(DriverTest, SmallSharedMemoryNeedsNoAttribute) {
  ASSERT_EQ(prepare(), FAGEN_OK) << fagen_last_error();
  EXPECT_TRUE(fake->attributes.empty());
}

TEST_F(DriverTest, NearestMachineCodeThenPtx) {
  ASSERT_EQ(prepare(), FAGEN_OK);
  EXPECT_EQ(fake->images, std::vector<const void *>{kCubin89});
  code.binary_count = 2; // PTX and the one for 8.0
  ASSERT_EQ(prepare(), FAGEN_OK);
  EXPECT_EQ(fake->images.back(), kCubin80);
  code.binary_count = 1;
  ASSERT_EQ(prepare(), FAGEN_OK);
  EXPECT_EQ(fake->images.back(), kPtx);
  fagen_choice_info info = fagen_choice_info_init();
  ASSERT_EQ(fagen_choice_get_info(&choice, &info), FAGEN_OK);
  EXPECT_STREQ(info.origin, "ptx");
  EXPECT_EQ(info.registers, 96);
  EXPECT_EQ(info.local_bytes, 8);
}

TEST_F(DriverTest, PreparesOnce) {
  ASSERT_EQ(prepare(), FAGEN_OK);
  ASSERT_EQ(fagen_prepare(&choice, device), FAGEN_OK);
  EXPECT_EQ(fake->images.size(), 1u);
}

TEST_F(DriverTest, LaunchesRunInOrder) {
  row.launch_count = 2;
  row.launches[1] = row.launches[0];
  row.launches[1].symbol = "second";
  ASSERT_EQ(prepare(), FAGEN_OK);
  ASSERT_EQ(fagen_run(&choice, &tensors, nullptr, 0, nullptr), FAGEN_OK);
  ASSERT_EQ(fake->launches.size(), 2u);
  EXPECT_EQ(fake->launches[0].symbol, "k");
  EXPECT_EQ(fake->launches[1].symbol, "second");
}

/// Only launches whose kernels wait, and only where the problem asks for it.
TEST_F(DriverTest, DependentLaunchesBeginEarly) {
  row.launch_count = 2;
  row.launches[1] = row.launches[0];
  row.dependent_launches = 2;
  for (uint32_t flags : {0u, uint32_t(FAGEN_FLAG_PDL)}) {
    problem.flags = flags;
    ASSERT_EQ(prepare(), FAGEN_OK);
    ASSERT_EQ(fagen_run(&choice, &tensors, nullptr, 0, nullptr), FAGEN_OK);
  }
  std::vector<bool> early;
  for (const FakeLaunch &launch : fake->launches)
    early.push_back(launch.beginsEarly);
  EXPECT_EQ(early, (std::vector<bool>{false, false, false, true}));
}

TEST_F(DriverTest, RunWantsTheDevicesContext) {
  ASSERT_EQ(prepare(), FAGEN_OK);
  fake->current = pointer(0x99);
  EXPECT_EQ(fagen_run(&choice, &tensors, nullptr, 0, nullptr), FAGEN_INVALID);
  EXPECT_STREQ(fagen_last_error(), "the current context is not the device's; fagen_device_make_current makes it so");
  EXPECT_TRUE(fake->launches.empty());
}

TEST_F(DriverTest, EmptyKeysStillLaunch) {
  problem.seq_kv = 0;
  tensors.k = tensors.v = nullptr;
  ASSERT_EQ(prepare(), FAGEN_OK);
  ASSERT_EQ(fagen_run(&choice, &tensors, nullptr, 0, nullptr), FAGEN_OK) << fagen_last_error();
  EXPECT_EQ(fake->launches.size(), 1u);
}

TEST_F(DriverTest, FailuresCarryTheDriversWords) {
  fake->failLoad = 218;
  EXPECT_EQ(prepare(), FAGEN_CUDA);
  EXPECT_STREQ(fagen_last_error(), "cannot load k: ptxas: no good: CUDA_ERROR_FAKE (218): as the test asked");
  fake->failLoad = 2;
  EXPECT_EQ(prepare(), FAGEN_OUT_OF_MEMORY);
  fake->failLoad = 0;
  row.launches[0].symbol = "missing";
  EXPECT_EQ(prepare(), FAGEN_CUDA);
  EXPECT_EQ(fake->modules, 0);
  row.launches[0].symbol = "k";
  ASSERT_EQ(prepare(), FAGEN_OK);
  fake->failLaunch = 700;
  EXPECT_EQ(fagen_run(&choice, &tensors, nullptr, 0, nullptr), FAGEN_CUDA);
}

TEST_F(DriverTest, SourceIsCompiledWhereTheDriverRefusesMachineCode) {
  if (fagen::nvrtcVersion().empty())
    GTEST_SKIP() << fagen_last_error();
  code.source = "extern \"C\" __global__ void k() {}\n";
  fake->failLoad = 209;
  fake->loadsToFail = 1;
  ASSERT_EQ(prepare(), FAGEN_OK) << fagen_last_error();
  fagen_choice_info info = fagen_choice_info_init();
  ASSERT_EQ(fagen_choice_get_info(&choice, &info), FAGEN_OK);
  EXPECT_TRUE(std::string(info.origin) == "nvrtc" || std::string(info.origin) == "cache") << info.origin;
  ASSERT_EQ(fake->images.size(), 1u);
  EXPECT_NE(fake->images[0], kCubin89);
}

TEST_F(DriverTest, OutOfMemoryIsNoReasonToCompile) {
  code.source = "no CUDA";
  fake->failLoad = 2;
  EXPECT_EQ(prepare(), FAGEN_OUT_OF_MEMORY);
}

TEST_F(DriverTest, PtxOfALaterCuda) {
  fake->failLoad = 222;
  EXPECT_EQ(prepare(), FAGEN_CUDA);
  EXPECT_STREQ(fagen_last_error(), "cannot load k: the driver is of CUDA 12.4 and the PTX was made by a later CUDA; "
                                   "update the driver, or make it with that CUDA");
}

TEST_F(DriverTest, CurrentContextAndMissingDevices) {
  fagen_device *other = nullptr;
  ASSERT_EQ(fagen_device_create(FAGEN_CURRENT_CONTEXT, &other), FAGEN_OK) << fagen_last_error();
  EXPECT_EQ(fake->retained, 1);
  fagen_device_info info = fagen_device_info_init();
  ASSERT_EQ(fagen_device_get_info(other, &info), FAGEN_OK);
  EXPECT_EQ(info.compute_capability, 89u);
  EXPECT_EQ(info.sm_count, 58u);
  EXPECT_STREQ(info.name, "fake");
  fagen_device_destroy(other);
  fake->current = nullptr;
  EXPECT_EQ(fagen_device_create(FAGEN_CURRENT_CONTEXT, &other), FAGEN_CUDA);
  EXPECT_EQ(other, nullptr);
  EXPECT_EQ(fagen_device_create(1, &other), FAGEN_CUDA);
}

} // namespace

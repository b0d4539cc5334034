// fagen: prepare and run on a real GPU; skipped where there is none.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TestTable.h"

#include <dlfcn.h>
#include <fagen/device/params.h>
#include <gtest/gtest.h>

using namespace fagen::test;

namespace {

static_assert(offsetof(fagen::device::AttentionParams, lse) == 32 &&
                  offsetof(fagen::device::AttentionParams, scale) == 176 &&
                  sizeof(fagen::device::AttentionParams) == 208,
              "the PTX below reads these");
/// Stores the scale at lse.
const char kPtx[] = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry k(.param .align 8 .b8 params[208])
{
  .reg .f32 %f1;
  .reg .b64 %rd1;
  ld.param.u64 %rd1, [params+32];
  cvta.to.global.u64 %rd1, %rd1;
  ld.param.f32 %f1, [params+176];
  st.global.f32 [%rd1], %f1;
  ret;
}
)";

/// A function of the driver; 0 is success.
template <typename... Arguments> int cuda(const char *name, Arguments... arguments) {
  static void *library = dlopen("libcuda.so.1", RTLD_NOW);
  auto function = reinterpret_cast<int (*)(Arguments...)>(library ? dlsym(library, name) : nullptr);
  return function ? function(arguments...) : -1;
}

struct Gpu : testing::Test {
  fagen_device *device = nullptr;
  fagen_binary ptx = {FAGEN_BINARY_PTX, 80, 0, 0, kPtx, sizeof(kPtx)};
  fagen_code code = {nullptr, "k.cu", &ptx, 1};
  fagen_row row = makeRow("k");
  TestTable table{"k"};
  fagen_choice choice = fagen_choice_init();
  fagen_tensors tensors = fagen_tensors_init();
  CUstream_st *stream = nullptr;
  unsigned long long memory = 0;

  void SetUp() override {
    if (fagen_device_create(0, &device))
      GTEST_SKIP() << fagen_last_error();
    ASSERT_EQ(fagen_device_make_current(device), FAGEN_OK);
    ASSERT_EQ(cuda("cuStreamCreate", &stream, 1u), 0);
    ASSERT_EQ(cuda("cuMemAlloc_v2", &memory, size_t(4096)), 0);
    ASSERT_EQ(cuda("cuMemsetD8_v2", memory, static_cast<unsigned char>(0), size_t(4096)), 0);
    tensors.q = tensors.k = tensors.v = tensors.o = reinterpret_cast<void *>(memory);
    tensors.lse = reinterpret_cast<float *>(memory + 1024);
    row.code = &code;
    row.sm = row.first_sm = 80;
    row.launches[0].shared_bytes = 96 * 1024;
    query();
  }
  void TearDown() override {
    if (!device)
      return;
    fagen_device_make_current(device);
    cuda("cuMemFree_v2", memory);
    cuda("cuStreamDestroy_v2", stream);
    fagen_device_destroy(device);
  }

  void query() {
    const fagen_problem problem = makeProblem();
    table.add(row);
    const fagen_table *tables[] = {table.get()};
    ASSERT_EQ(fagen_query(tables, 1, &problem, device, &choice), FAGEN_OK) << fagen_last_error();
  }
  fagen_status run() { return fagen_run(&choice, &tensors, nullptr, 0, stream); }
  float stored() {
    float value = -1;
    EXPECT_EQ(cuda("cuStreamSynchronize", stream), 0);
    EXPECT_EQ(cuda("cuMemcpyDtoH_v2", static_cast<void *>(&value), memory + 1024, sizeof(value)), 0);
    return value;
  }
};

TEST_F(Gpu, Runs) {
  ASSERT_EQ(fagen_prepare(&choice, device), FAGEN_OK) << fagen_last_error();
  ASSERT_EQ(run(), FAGEN_OK) << fagen_last_error();
  EXPECT_EQ(stored(), 0.125f);
  fagen_choice_info info = fagen_choice_info_init();
  ASSERT_EQ(fagen_choice_get_info(&choice, &info), FAGEN_OK);
  EXPECT_STREQ(info.origin, "ptx");
  EXPECT_GT(info.registers, 0);
  EXPECT_EQ(info.local_bytes, 0);
}

TEST_F(Gpu, CaptureNeverPrepares) {
  void *graph = nullptr, *executable = nullptr;
  ASSERT_EQ(cuda("cuStreamBeginCapture_v2", stream, 0), 0);
  EXPECT_EQ(run(), FAGEN_NOT_PREPARED);
  ASSERT_EQ(cuda("cuStreamEndCapture", stream, &graph), 0); // the refusal did not break the capture
  cuda("cuGraphDestroy", graph);

  ASSERT_EQ(fagen_prepare(&choice, device), FAGEN_OK) << fagen_last_error();
  ASSERT_EQ(cuda("cuStreamBeginCapture_v2", stream, 0), 0);
  EXPECT_EQ(run(), FAGEN_OK) << fagen_last_error();
  ASSERT_EQ(cuda("cuStreamEndCapture", stream, &graph), 0);
  EXPECT_EQ(stored(), 0.0f);
  ASSERT_EQ(cuda("cuGraphInstantiateWithFlags", &executable, graph, 0ull), 0);
  ASSERT_EQ(cuda("cuGraphLaunch", executable, stream), 0);
  EXPECT_EQ(stored(), 0.125f);
  cuda("cuGraphExecDestroy", executable);
  cuda("cuGraphDestroy", graph);
}

TEST_F(Gpu, RunWantsTheDevicesContext) {
  ASSERT_EQ(fagen_prepare(&choice, device), FAGEN_OK) << fagen_last_error();
  ASSERT_EQ(cuda("cuCtxSetCurrent", static_cast<void *>(nullptr)), 0);
  EXPECT_EQ(run(), FAGEN_INVALID);
  fagen_device *none = nullptr;
  EXPECT_EQ(fagen_device_create(FAGEN_CURRENT_CONTEXT, &none), FAGEN_CUDA);
}

TEST_F(Gpu, CurrentContext) {
  fagen_device *same = nullptr;
  ASSERT_EQ(fagen_device_create(FAGEN_CURRENT_CONTEXT, &same), FAGEN_OK) << fagen_last_error();
  std::swap(device, same);
  query();
  EXPECT_EQ(fagen_prepare(&choice, device), FAGEN_OK) << fagen_last_error();
  EXPECT_EQ(run(), FAGEN_OK) << fagen_last_error();
  EXPECT_EQ(stored(), 0.125f);
  std::swap(device, same);
  fagen_device_destroy(same);
}

TEST_F(Gpu, BrokenPtxCarriesTheAssemblersWords) {
  static const char broken[] = ".version 7.0\n.target sm_80\n.address_size 64\nnonsense\n";
  ptx.data = broken;
  EXPECT_EQ(fagen_prepare(&choice, device), FAGEN_CUDA);
  EXPECT_NE(std::string(fagen_last_error()).find("ptxas"), std::string::npos) << fagen_last_error();
}

} // namespace

// fagen: time of fagen_run over a bare launch of the same kernel (performance.md, P8: at most 1 µs). Needs a GPU.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernel is empty, so what is timed is the host's side. Launches go out in bursts that fit the driver's queue, and
// only the burst is timed, not the wait for its end. The two kinds alternate within one benchmark, so that clocks and
// neighbours affect both alike.
#include "../unittests/Runtime/TestTable.h"
#include "driver.h"

#include <fagen/device/params.h>

#include <benchmark/benchmark.h>
#include <chrono>
#include <dlfcn.h>
#include <string>

using namespace fagen;
using namespace fagen::test;

namespace {

/// An empty kernel that takes the parameter block of every generated one.
std::string emptyKernel() {
  return ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .align 8 .b8 params[" +
         std::to_string(sizeof(device::AttentionParams)) + "])\n{\n  ret;\n}\n";
}

constexpr int kBurst = 256;

/// Seconds of kBurst calls, and then waits for them.
template <typename Launch> double timeBurst(Launch launch) {
  static auto synchronize =
      reinterpret_cast<CuResult (*)()>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuCtxSynchronize"));
  auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kBurst; ++i)
    launch();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  synchronize();
  return seconds;
}

void launchOverhead(benchmark::State &state) {
  fagen_device *device = nullptr;
  if (fagen_device_create(0, &device) || fagen_device_make_current(device))
    return state.SkipWithError(fagen_last_error());
  static const std::string text = emptyKernel();
  static const fagen_binary ptx = {FAGEN_BINARY_PTX, 80, 0, 0, text.c_str(), text.size() + 1};
  static const fagen_code code = {nullptr, "k.cu", &ptx, 1};
  fagen_row row = makeRow("k");
  row.sm = 80;
  row.code = &code;
  row.launches[0].shared_bytes = 0;
  TestTable table("k");
  table.add(row);
  const fagen_table *tables[] = {table.get()};
  fagen_problem problem = makeProblem();
  fagen_choice choice = fagen_choice_init();
  if (fagen_query(tables, 1, &problem, device, &choice) || fagen_prepare(&choice, device))
    return state.SkipWithError(fagen_last_error());

  const Driver &d = *driver();
  CuModule module = nullptr;
  CuFunction function = nullptr;
  if (d.cuModuleLoadDataEx(&module, text.c_str(), 0, nullptr, nullptr) || d.cuModuleGetFunction(&function, module, "k"))
    return state.SkipWithError("the bare kernel does not load");
  device::AttentionParams params = {};
  void *arguments[] = {&params};
  fagen_tensors tensors = fagen_tensors_init();
  tensors.q = tensors.k = tensors.v = tensors.o = reinterpret_cast<void *>(0x100000); // never read

  double run = 0, bare = 0;
  fagen_status status = FAGEN_OK;
  for (auto _ : state) {
    double bareBurst =
        timeBurst([&] { d.cuLaunchKernel(function, 32, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr); });
    double runBurst = timeBurst([&] { status = status ? status : fagen_run(&choice, &tensors, nullptr, 0, nullptr); });
    state.SetIterationTime(runBurst);
    bare += bareBurst;
    run += runBurst;
  }
  if (status)
    state.SkipWithError(fagen_last_error());
  double launches = double(state.iterations()) * kBurst;
  state.counters["run_ns"] = run / launches * 1e9;
  state.counters["bare_ns"] = bare / launches * 1e9;
  state.counters["overhead_ns"] = (run - bare) / launches * 1e9;
  d.cuModuleUnload(module);
  fagen_device_destroy(device);
}

BENCHMARK(launchOverhead)->UseManualTime()->Repetitions(5);

} // namespace

BENCHMARK_MAIN();

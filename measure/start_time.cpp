// fagen: how long a C++ process takes from its start to its first result, part by part; measure/start_time.py runs it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// start_time SINCE SET...: SINCE is when the process was started, in seconds of CLOCK_MONOTONIC; SET are directories of
// kernel sets. Prints seconds as JSON. V is of ones, so O is. CUDA's own start is cuInit and the making of the context.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <dlfcn.h>
#include <fagen/fagen.hpp>
#include <vector>

static double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

static void *const cuda = dlopen("libcuda.so.1", RTLD_NOW);

template <typename... Arguments> static void call(const char *name, Arguments... arguments) {
  auto function = reinterpret_cast<int (*)(Arguments...)>(cuda ? dlsym(cuda, name) : nullptr);
  const int status = function ? function(arguments...) : -1;
  if (status) {
    std::fprintf(stderr, "%s: %d\n", name, status);
    std::exit(1);
  }
}

static uint64_t onGpu(const std::vector<uint16_t> &values) {
  uint64_t address = 0;
  call("cuMemAlloc_v2", &address, values.size() * 2);
  call("cuMemcpyHtoD_v2", address, static_cast<const void *>(values.data()), values.size() * 2);
  return address;
}

int main(int count, char **arguments) try {
  const double since = std::atof(arguments[1]), begun = now();
  call("cuInit", 0u);
  fagen::Device device(0);
  device.makeCurrent();
  const std::vector<uint16_t> zeros(16 * 4096 * 64, 0), ones(zeros.size(), 0x3c00);
  const uint64_t q = onGpu(zeros), v = onGpu(ones), o = onGpu(zeros);
  const double started = now();

  std::vector<const fagen_table *> tables; // they outlive the device: nothing frees them
  for (int i = 2; i < count; ++i) {
    const fagen_table *table = nullptr;
    fagen::check(fagen_table_load(arguments[i], &table));
    tables.push_back(table);
  }
  const double loaded = now();
  fagen_problem problem = fagen_problem_init();
  problem.dtype = FAGEN_DTYPE_F16;
  problem.mask = FAGEN_MASK_CAUSAL;
  problem.batch = 1, problem.heads = 16, problem.seq_q = problem.seq_kv = 4096, problem.head_dim_qk = 64;
  fagen_choice choice = fagen_choice_init();
  fagen::check(fagen_query(tables.data(), tables.size(), &problem, device.get(), &choice));
  fagen::check(fagen_prepare(&choice, device.get()));
  const double prepared = now();
  void *workspace = nullptr;
  fagen::check(fagen_lend_workspace(&choice, device.get(), nullptr, &workspace));
  fagen_tensors tensors = fagen_tensors_init();
  tensors.q = tensors.k = reinterpret_cast<void *>(q);
  tensors.v = reinterpret_cast<void *>(v);
  tensors.o = reinterpret_cast<void *>(o);
  fagen::check(fagen_run(&choice, &tensors, workspace, choice.workspace_bytes, nullptr));
  std::vector<uint16_t> result(zeros.size());
  call("cuMemcpyDtoH_v2", static_cast<void *>(result.data()), o, result.size() * 2);
  const double done = now();

  fagen_choice_info info = fagen_choice_info_init();
  fagen::check(fagen_choice_get_info(&choice, &info));
  std::printf("{\"kernel\": \"%s\", \"origin\": \"%s\", \"right\": %s, \"cuda\": %.4f, \"process\": %.4f, \"load\": "
              "%.4f, \"prepare\": %.4f, "
              "\"launch\": %.4f, \"without_cuda\": %.4f}\n",
              info.variant, info.origin, result == ones ? "true" : "false", started - begun, begun - since,
              loaded - started, prepared - loaded, done - prepared, done - since - (started - begun));
  std::fflush(stdout);
  std::_Exit(0);
} catch (const fagen::Error &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

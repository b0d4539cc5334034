// fagen: a grid's CTAs, side by side on the machine's cores.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Compile.h"
#include "Cores.h"
#include "Cta.h"

#include <algorithm>
#include <atomic>
#include <dlfcn.h>
#include <fmt/format.h>
#include <mutex>
#include <thread>

namespace fagen::emulator {

namespace {

/// CTAs keep their stacks and shared memory from launch to launch.
class Pool {
public:
  std::unique_ptr<Cta> take() {
    const std::lock_guard lock(mutex);
    if (idle.empty())
      return std::make_unique<Cta>();
    std::unique_ptr<Cta> cta = std::move(idle.back());
    idle.pop_back();
    return cta;
  }
  void give(std::unique_ptr<Cta> cta) {
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(cta));
  }

private:
  std::mutex mutex;
  std::vector<std::unique_ptr<Cta>> idle;
};

Pool &pool() {
  static Pool instance;
  return instance;
}

/// What the workers of a launch share.
struct Progress {
  std::atomic<unsigned> nextCta{0};
  std::atomic<bool> noMemory{false};
  std::mutex mutex; ///< guards what follows
  uint64_t instructions = 0;
  std::vector<std::pair<unsigned, Findings>> found; ///< of the CTAs that have any
  BankSites banks;
  std::vector<bool> lines; ///< that ran
};

/// a = a or b.
void merge(std::vector<bool> &a, const std::vector<bool> &b) {
  a.resize(std::max(a.size(), b.size()));
  for (size_t i = 0; i < b.size(); ++i)
    a[i] = a[i] || b[i];
}

/// The set ones.
std::vector<int> numbers(const std::vector<bool> &lines) {
  std::vector<int> list;
  for (size_t i = 0; i < lines.size(); ++i)
    if (lines[i])
      list.push_back(static_cast<int>(i));
  return list;
}

void work(const Grid &grid, Progress &progress) {
  std::unique_ptr<Cta> cta = pool().take();
  if (!cta->reserve(grid)) {
    progress.noMemory = true;
    return grid.atomics.leave();
  }
  uint64_t instructions = 0;
  std::vector<std::pair<unsigned, Findings>> found;
  BankSites banks;
  std::vector<bool> lines;
  const unsigned cluster = grid.launch.cluster;
  for (unsigned index; (index = progress.nextCta.fetch_add(cluster)) < grid.launch.grid;) {
    cta->run(grid, index);
    instructions += cta->instructions();
    if (!cta->findings().empty())
      found.emplace_back(index, cta->findings());
    banks.merge(cta->bankSites());
    merge(lines, cta->linesRun());
  }
  grid.atomics.leave();
  pool().give(std::move(cta));
  const std::lock_guard lock(progress.mutex);
  progress.instructions += instructions;
  progress.banks.merge(banks);
  merge(progress.lines, lines);
  progress.found.insert(progress.found.end(), found.begin(), found.end());
}

Report refuse(const std::string &cuPath, std::string message) {
  return {false, {{"launch", std::move(message), cuPath, 0}}, 0};
}

} // namespace

Report Module::launch(const Launch &launch, const void *params, size_t paramBytes, const Options &options) const {
  if (launch.threads < 1 || launch.threads > 1024)
    return refuse(cuPath, fmt::format("a CTA has 1 to 1024 threads, not {}", launch.threads));
  if (launch.cluster < 1 || launch.grid % launch.cluster != 0 ||
      (launch.cluster > 1 && (launch.threads % kWarpLanes != 0 || launch.threads * launch.cluster > 1024)))
    return refuse(cuPath,
                  fmt::format("{} CTAs of {} threads in clusters of {}: a grid has whole clusters, and a cluster "
                              "of several CTAs at most 1024 threads, whole warps",
                              launch.grid, launch.threads, launch.cluster));
  if (paramBytes > 4096)
    return refuse(cuPath, fmt::format("{} bytes of parameters, at most 4096 are possible", paramBytes));
  void *kernel = dlsym(library, launch.symbol.c_str());
  if (!kernel)
    return refuse(cuPath, fmt::format("there is no kernel '{}'", launch.symbol));

  std::vector<std::unique_ptr<GlobalRaces>> races(launch.buffers.size());
  for (size_t i = 0; i < races.size() && options.races; ++i)
    if (launch.buffers[i].writable)
      races[i] = std::make_unique<GlobalRaces>(launch.buffers[i].begin, launch.buffers[i].bytes);
  const unsigned wanted = launch.workers ? launch.workers : usableCores();
  const unsigned workers = std::max(1u, std::min(wanted, launch.grid / launch.cluster));
  AtomicOrder atomics(workers, options.seed);
  Counts counts;
  const Grid grid{launch, options, kernel, params, paramBytes, races, atomics, counts};
  Progress progress;
  std::vector<std::thread> helpers;
  for (unsigned i = 1; i < workers; ++i)
    helpers.emplace_back(work, std::cref(grid), std::ref(progress));
  work(grid, progress);
  for (std::thread &helper : helpers)
    helper.join();
  if (progress.noMemory)
    return refuse(cuPath, fmt::format("no memory for {} threads and {} bytes of shared memory",
                                      launch.threads * launch.cluster, launch.sharedBytes * launch.cluster));

  // In the order of the CTAs, so that the report does not depend on the workers' speed.
  std::sort(progress.found.begin(), progress.found.end(), [](auto &a, auto &b) { return a.first < b.first; });
  Findings all(std::max<size_t>(1, options.maxFindings));
  for (const auto &[index, findings] : progress.found)
    all.merge(findings);
  return {progress.found.empty(), all.list(kKernelFile, cuPath, launch.lines), progress.instructions,
          progress.banks.list(), numbers(progress.lines)};
}

} // namespace fagen::emulator

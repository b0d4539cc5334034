// fagen: a loop spread over the machine's threads.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "parallel.h"
#include "emulator/engine/Cores.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace fagen::lab {

void parallelFor(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)> &body) {
  int64_t chunks = (count + grain - 1) / grain;
  auto workers = std::min<int64_t>(usableCores(), chunks);
  if (workers <= 1) {
    if (count > 0)
      body(0, count);
    return;
  }
  std::atomic<int64_t> next{0};
  std::exception_ptr failure;
  std::mutex failureLock;
  auto work = [&] {
    try {
      for (int64_t chunk = next++; chunk < chunks; chunk = next++)
        body(chunk * grain, std::min(count, (chunk + 1) * grain));
    } catch (...) {
      std::lock_guard guard(failureLock);
      if (!failure)
        failure = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (int64_t i = 1; i < workers; ++i)
    threads.emplace_back(work);
  work();
  for (std::thread &thread : threads)
    thread.join();
  if (failure)
    std::rethrow_exception(failure);
}

} // namespace fagen::lab

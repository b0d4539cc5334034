// fagen: a program that uses what glibc gave a new version since 2.28: constructors, threads, locks, dlopen, files,
// powers. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <cstdio>
#include <dlfcn.h>
#include <filesystem>
#include <memory>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <stdexcept>
#include <thread>

static int constructed = 1;
struct Global {
  Global() { constructed += 41; }
  ~Global() { std::puts("destroyed"); }
} global;

int main(int argc, char **) {
  std::shared_mutex mutex;
  std::once_flag once;
  int caught = 0;
  std::thread thread([&] {
    std::unique_lock lock(mutex);
    try {
      throw std::runtime_error("in a thread");
    } catch (const std::exception &) {
      ++caught;
    }
  });
  thread.join();
  std::call_once(once, [&] {
    std::shared_lock lock(mutex);
    ++caught;
  });
  std::random_device random;
  auto shared = std::make_shared<bool>(random() != random() || random() != random());
  auto root = reinterpret_cast<double (*)(double)>(dlsym(dlopen("libm.so.6", RTLD_NOW), "sqrt"));
  std::printf("%d %d %d %.3f %.3f %d %d\n", constructed, caught, *shared, root(4.0 * argc),
              std::exp(double(argc)) + std::pow(double(argc) + 1, 3), std::filesystem::is_directory("/"),
              std::filesystem::exists("/no such file"));
}

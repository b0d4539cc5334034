// fagen: compiling a kernel, the cache, and what is said when it fails.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Kernels.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>

namespace fagen::emulator {
namespace {

namespace fs = std::filesystem;

/// A cache directory of the test's own, and the compiler's name; both are put back at the end.
class Compile : public testing::Test {
protected:
  void SetUp() override {
    const char *cache = std::getenv("FAGEN_CACHE_DIR");
    oldCache = cache ? cache : "";
    directory = fs::temp_directory_path() / ("fagen-compile-test-" + std::to_string(getpid()));
    fs::create_directories(directory);
    setenv("FAGEN_CACHE_DIR", directory.c_str(), 1);
  }
  void TearDown() override {
    if (oldCache.empty())
      unsetenv("FAGEN_CACHE_DIR");
    else
      setenv("FAGEN_CACHE_DIR", oldCache.c_str(), 1);
    unsetenv("FAGEN_CXX");
    fs::remove_all(directory);
  }

  std::string write(const std::string &name, const std::string &content) {
    const fs::path path = directory / name;
    std::ofstream(path) << content;
    return path;
  }

  std::vector<fs::path> libraries() {
    std::vector<fs::path> found;
    for (const auto &entry : fs::directory_iterator(directory / "emulator"))
      if (entry.path().extension() == ".so")
        found.push_back(entry.path());
    return found;
  }

  fs::path directory;
  std::string oldCache;
  std::string error;
};

const std::string kGood = R"(
#include <fagen/device/params.h>
#include <fagen/device/ptx/global.h>
extern "C" __global__ void one(const __grid_constant__ fagen::device::AttentionParams params) {
  fagen::device::ptx::st_global_f32(params.lse, params.scale);
}
)";

float runOne(const Module &module) {
  float result = 0.0f;
  struct {
    char before[5 * 8 - 8];
    float *lse;
    char between[14 * 8 + 6 * 4];
    float scale, scaleLog2;
  } params = {{}, &result, {}, 3.5f, 0.0f};
  const Launch launch = {"one", 1, 1, 0, {{&result, 4, true, "lse"}}};
  const Report report = module.launch(launch, &params, sizeof(params), {});
  EXPECT_TRUE(report.ok) << text(report);
  return result;
}

TEST_F(Compile, SecondTimeComesFromTheCache) {
  const std::string path = write("one.cu", kGood);
  std::unique_ptr<Module> module = Module::compile(path, error);
  ASSERT_TRUE(module) << error;
  EXPECT_EQ(runOne(*module), 3.5f);
  ASSERT_EQ(libraries().size(), 1u);
  const auto written = fs::last_write_time(libraries()[0]);
  fs::create_directories(directory / "elsewhere");
  module = Module::compile(write("elsewhere/other.cu", kGood), error);
  ASSERT_TRUE(module) << error;
  ASSERT_EQ(libraries().size(), 1u);
  EXPECT_EQ(fs::last_write_time(libraries()[0]), written);
}

TEST_F(Compile, DamagedEntryIsBuiltAgain) {
  const std::string path = write("one.cu", kGood);
  ASSERT_TRUE(Module::compile(path, error)) << error;
  const fs::path library = libraries().at(0);
  fs::resize_file(library, fs::file_size(library) / 2);
  const std::unique_ptr<Module> module = Module::compile(path, error);
  ASSERT_TRUE(module) << error;
  EXPECT_EQ(runOne(*module), 3.5f);
}

TEST_F(Compile, ChangedTextIsAnotherEntry) {
  ASSERT_TRUE(Module::compile(write("one.cu", kGood), error)) << error;
  ASSERT_TRUE(Module::compile(write("one.cu", kGood + "// changed\n"), error)) << error;
  EXPECT_EQ(libraries().size(), 2u);
}

TEST_F(Compile, OtherCompilers) {
  const std::string path = write("one.cu", kGood);
  unsigned entries = 0;
  for (const char *compiler : {"g++", "clang++"}) {
    if (std::system((std::string(compiler) + " --version > /dev/null 2>&1").c_str()) != 0)
      continue;
    setenv("FAGEN_CXX", compiler, 1);
    const std::unique_ptr<Module> module = Module::compile(path, error);
    ASSERT_TRUE(module) << error;
    EXPECT_EQ(runOne(*module), 3.5f);
    EXPECT_EQ(libraries().size(), ++entries);
  }
}

TEST_F(Compile, Errors) {
  EXPECT_FALSE(Module::compile("/nonexistent/a.cu", error));
  EXPECT_EQ(error, "cannot read '/nonexistent/a.cu'");

  const std::string bad = write("bad.cu", "int good;\nint bad = nonsense;\n");
  EXPECT_FALSE(Module::compile(bad, error));
  EXPECT_EQ(error.find("'" + bad + "' does not compile for the emulator:\n" + bad + ":2:"), 0u) << error;

  setenv("FAGEN_CXX", "no-such-compiler", 1);
  EXPECT_FALSE(Module::compile(write("one.cu", kGood), error));
  EXPECT_EQ(error, "the compiler 'no-such-compiler', named by FAGEN_CXX, does not run");
}

} // namespace
} // namespace fagen::emulator

// fagen: compiling a kernel, the cache, and what is said when it fails.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../Kernels.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sys/resource.h>
#include <sys/stat.h>

namespace fagen::emulator::compileTest {
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
      if (entry.path().extension() == ".bin")
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
}

/// What is wrong with the machine is no verdict on the kernel.
TEST_F(Compile, FaultsOfTheMachine) {
  const std::string path = write("one.cu", kGood);
  const auto fault = [&] {
    try {
      Module::compile(path, error);
    } catch (const MachineError &fault) {
      return std::string(fault.what());
    }
    return std::string("none");
  };
  setenv("FAGEN_CXX", "no-such-compiler", 1);
  EXPECT_EQ(fault(), "the compiler 'no-such-compiler', named by FAGEN_CXX, does not run");
  setenv("FAGEN_CXX", "/bin/false", 1);
  EXPECT_EQ(fault(), "the compiler '/bin/false', named by FAGEN_CXX, does not run");

  const auto compiler = [&](const std::string &name, const std::string &script) {
    const std::string program = write(name, "#!/bin/sh\n[ \"$1\" = --version ] && echo 1 && exit 0\n" + script + "\n");
    fs::permissions(program, fs::perms::owner_all);
    setenv("FAGEN_CXX", program.c_str(), 1);
    return "'" + program + "' ";
  };
  std::string which = compiler("broken", "echo no assembler; exit 1");
  EXPECT_EQ(fault(), which + "compiles nothing here, not even an empty file:\nno assembler\n");
  which = compiler("killed", "kill -9 $$");
  EXPECT_EQ(fault(), which + "was killed");
  compiler("good", "exec c++ \"$@\"");
  EXPECT_EQ(fault(), "none");

  fs::permissions(directory / "emulator", fs::perms::all);
  EXPECT_EQ(fault(), "cache directory '" + (directory / "emulator").string() +
                         "': can be written by other users; FAGEN_CACHE_DIR names another");
}

TEST_F(Compile, AFullDiskIsNoVerdictOnTheKernel) {
  const std::string path = write("one.cu", kGood);
  const auto compileWithLittleRoom = [&] {
    const struct rlimit small = {14000, 14000}; // enough for headers and text, not for a library
    setrlimit(RLIMIT_FSIZE, &small);
    signal(SIGXFSZ, SIG_IGN);
    try {
      Module::compile(path, error);
    } catch (const MachineError &fault) {
      std::fputs(fault.what(), stderr);
      std::exit(70);
    }
    std::exit(0);
  };
  EXPECT_EXIT(compileWithLittleRoom(), testing::ExitedWithCode(70),
              "compiles nothing here|cannot write|cannot keep|was killed");
}

/// Others cannot hand us a library: the file must be ours, and not one that a link leads to.
TEST_F(Compile, EntriesOfOthersAreBuiltAgain) {
  const std::string path = write("one.cu", kGood);
  ASSERT_TRUE(Module::compile(path, error)) << error;
  const fs::path entry = libraries().at(0);
  const auto isRebuilt = [&] {
    const auto before = fs::last_write_time(entry);
    const std::unique_ptr<Module> module = Module::compile(path, error);
    return module && runOne(*module) == 3.5f && fs::last_write_time(entry) != before && !fs::is_symlink(entry);
  };
  fs::rename(entry, directory / "elsewhere");
  fs::create_symlink(directory / "elsewhere", entry);
  EXPECT_TRUE(isRebuilt());
  fs::permissions(entry, fs::perms::all);
  EXPECT_TRUE(isRebuilt());
  if (geteuid() == 0) {
    ASSERT_EQ(chown(entry.c_str(), 12345, 12345), 0);
    EXPECT_TRUE(isRebuilt());
  }
}

/// Headers on disk are those of one compilation only: there are none whose change or loss could matter.
TEST_F(Compile, NoHeaderIsKept) {
  ASSERT_TRUE(Module::compile(write("one.cu", kGood), error)) << error;
  for (const auto &entry : fs::recursive_directory_iterator(directory))
    EXPECT_NE(entry.path().extension(), ".h") << entry.path();
}

TEST_F(Compile, WithoutACacheNothingIsKept) {
  unsetenv("FAGEN_CACHE_DIR");
  const char *const names[] = {"XDG_CACHE_HOME", "HOME"};
  std::map<const char *, std::string> before;
  for (const char *name : names)
    if (const char *value = std::getenv(name))
      before[name] = value;
  for (const char *name : names)
    unsetenv(name);
  const std::unique_ptr<Module> module = Module::compile(write("one.cu", kGood), error);
  for (const auto &[name, value] : before)
    setenv(name, value.c_str(), 1);
  ASSERT_TRUE(module) << error;
  EXPECT_EQ(runOne(*module), 3.5f);
}

/// The loader knows libraries by name; each of these has one of its own.
TEST_F(Compile, ModulesOfOneTimeAreKeptApart) {
  std::vector<std::unique_ptr<Module>> modules;
  for (int i = 0; i < 3; ++i)
    for (const char *value : {"1.0f", "2.0f"}) {
      const std::string text = kGood.substr(0, kGood.find("params.scale")) + value + ");\n}\n";
      modules.push_back(Module::compile(write("m.cu", text), error));
      ASSERT_TRUE(modules.back()) << error;
      EXPECT_EQ(runOne(*modules.back()), value[0] - '0');
      if (modules.size() == 3)
        modules.clear();
    }
}

} // namespace
} // namespace fagen::emulator::compileTest

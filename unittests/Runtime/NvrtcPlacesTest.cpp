// fagen: where NVRTC is looked for: wheels next to the library, Python environments, toolkits, one that is named.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compile/nvrtc_places.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <map>

using namespace fagen;
namespace fs = std::filesystem;

namespace {

struct NvrtcPlaces : testing::Test {
  fs::path root;
  std::map<std::string, std::string> variables;

  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "fagen-places-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root = name;
  }
  void TearDown() override { fs::remove_all(root); }

  std::string put(const std::string &path) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << "x";
    return root / path;
  }
  std::vector<std::string> places(const fs::path &here) {
    return nvrtcPlaces(here, [&](const char *name) {
      auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    });
  }
  static size_t placeOf(const std::vector<std::string> &all, const std::string &file) {
    return size_t(std::find(all.begin(), all.end(), file) - all.begin());
  }
};

TEST_F(NvrtcPlaces, ANamedOneIsTheOnlyOne) {
  variables["FAGEN_NVRTC"] = "/some/libnvrtc.so";
  EXPECT_EQ(places(root), std::vector<std::string>{"/some/libnvrtc.so"});
}

TEST_F(NvrtcPlaces, WheelsBesideThePackage) {
  const std::string older = put("site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  const std::string newer = put("site-packages/nvidia/cu13/lib/libnvrtc.so.13");
  put("site-packages/nvidia/cublas/lib/libcublas.so.12");
  fs::create_directories(root / "site-packages/fagen/lib");
  const std::vector<std::string> all = places(root / "site-packages/fagen/lib");
  EXPECT_EQ(all[0], "libnvrtc.so.13"); // what the process has loaded comes first
  ASSERT_LT(placeOf(all, newer), all.size());
  EXPECT_LT(placeOf(all, newer), placeOf(all, older));
  EXPECT_LT(placeOf(all, older), placeOf(all, "/usr/local/cuda/lib64/libnvrtc.so.13"));
  for (const std::string &place : all)
    EXPECT_EQ(place.find("cublas"), std::string::npos) << place;
}

TEST_F(NvrtcPlaces, BesideTheLibrary) {
  const std::vector<std::string> all = places(root);
  EXPECT_LT(placeOf(all, root / "libnvrtc.so.13"), all.size());
}

TEST_F(NvrtcPlaces, PythonEnvironments) {
  const std::string venv = put("venv/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13");
  const std::string conda = put("conda/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  EXPECT_EQ(placeOf(places("/"), venv), places("/").size());
  variables = {{"VIRTUAL_ENV", root / "venv"}, {"CONDA_PREFIX", root / "conda"}, {"CUDA_HOME", "/opt/cuda"}};
  const std::vector<std::string> all = places("/");
  EXPECT_LT(placeOf(all, venv), placeOf(all, conda));
  EXPECT_LT(placeOf(all, conda), placeOf(all, "/opt/cuda/lib64/libnvrtc.so.13"));
  EXPECT_LT(placeOf(all, "/opt/cuda/lib64/libnvrtc.so.13"), all.size());
}

TEST_F(NvrtcPlaces, OwnDirectoryIsTheProgramsHere) {
  EXPECT_EQ(ownDirectory(), fs::canonical("/proc/self/exe").parent_path());
}

} // namespace

// fagen: where NVRTC may lie.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compile/nvrtc_places.h"

#include <algorithm>
#include <dlfcn.h>

namespace fagen {
namespace {

namespace fs = std::filesystem;

constexpr const char *kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12"}; // the newer first
constexpr int kLevelsAbove = 3;                                        // site-packages/fagen/lib, and one more

/// The directories in a directory, in order; none where it cannot be read.
std::vector<fs::path> directoriesIn(const fs::path &directory) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error); !error && entry != fs::directory_iterator();
       entry.increment(error))
    if (std::error_code ignored; entry->is_directory(ignored))
      found.push_back(entry->path());
  std::sort(found.begin(), found.end());
  return found;
}

/// NVRTC in the wheels of a site-packages: nvidia/cu13/lib, nvidia/cuda_nvrtc/lib.
void addWheels(const fs::path &packages, std::vector<std::string> &places) {
  const std::vector<fs::path> wheels = directoriesIn(packages / "nvidia");
  for (const char *name : kNames)
    for (const fs::path &wheel : wheels)
      if (std::error_code ignored; fs::exists(wheel / "lib" / name, ignored))
        places.push_back(wheel / "lib" / name);
}

void addPythons(const Environment &environment, std::vector<std::string> &places) {
  for (const char *variable : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const char *prefix = environment(variable))
      for (const fs::path &python : directoriesIn(fs::path(prefix) / "lib"))
        if (python.filename().string().starts_with("python"))
          addWheels(python / "site-packages", places);
}

void addToolkits(const Environment &environment, std::vector<std::string> &places) {
  std::vector<std::string> homes;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char *home = environment(variable))
      homes.push_back(home);
  homes.push_back("/usr/local/cuda");
  for (const std::string &home : homes)
    for (const char *name : {"/lib64/libnvrtc.so.13", "/lib/libnvrtc.so.13", "/lib64/libnvrtc.so.12"})
      places.push_back(home + name);
}

} // namespace

std::vector<std::string> nvrtcPlaces(const fs::path &here, const Environment &environment) {
  if (const char *file = environment("FAGEN_NVRTC"))
    return {file};
  std::vector<std::string> places(std::begin(kNames), std::end(kNames));
  if (!here.empty()) {
    for (const char *name : kNames)
      places.push_back(here / name);
    fs::path above = here;
    for (int level = 0; level < kLevelsAbove && above.has_relative_path(); ++level) {
      above = above.parent_path();
      addWheels(above, places);
    }
  }
  addPythons(environment, places);
  addToolkits(environment, places);
  return places;
}

fs::path ownDirectory() {
  Dl_info info = {};
  std::error_code error;
  if (!dladdr(reinterpret_cast<const void *>(&ownDirectory), &info) || !info.dli_fname)
    return {};
  const fs::path file = fs::canonical(info.dli_fname, error);
  return error ? fs::path() : file.parent_path();
}

} // namespace fagen

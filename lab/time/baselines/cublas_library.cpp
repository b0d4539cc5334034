// fagen: loads cuBLAS at run time.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cublas_library.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <type_traits>
#include <vector>

namespace fagen::lab {

namespace {

struct Loaded {
  Cublas functions{};
  std::string reason; ///< empty: every function is there
};

/// In a directory outside the loader's path, the library that it needs is next to it and must be loaded first.
void *openAt(const std::filesystem::path &file) {
  std::string name = file.filename().string();
  std::string needed = "libcublasLt" + name.substr(std::string("libcublas").size());
  if (file.has_parent_path())
    dlopen((file.parent_path() / needed).c_str(), RTLD_NOW | RTLD_LOCAL);
  return dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
}

void *openLibrary() {
  if (const char *named = getenv("FAGEN_CUBLAS"); named && *named)
    return openAt(named);
  std::vector<std::filesystem::path> directories = {""}; // the loader's path
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char *root = getenv(variable); root && *root)
      directories.emplace_back(root);
  directories.emplace_back("/usr/local/cuda");
  for (const auto &directory : directories)
    for (const char *inside : {"lib64", "lib"})
      for (const char *name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"})
        if (void *library = openAt(directory.empty() ? name : directory / inside / name))
          return library;
  return nullptr;
}

Loaded load() {
  Loaded loaded;
  void *library = openLibrary();
  if (!library) {
    loaded.reason = "libcublas.so.13, .12 or .11 is not found; FAGEN_CUBLAS can name the file";
    return loaded;
  }
  auto find = [&](const char *symbol, auto &function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
    if (!function)
      loaded.reason = std::string("libcublas has no ") + symbol;
  };
  Cublas &f = loaded.functions;
  find("cublasCreate_v2", f.create);
  find("cublasDestroy_v2", f.destroy);
  find("cublasSetStream_v2", f.setStream);
  find("cublasSetWorkspace_v2", f.setWorkspace);
  find("cublasGetVersion_v2", f.getVersion);
  find("cublasGetStatusString", f.statusString);
  find("cublasGemmStridedBatchedEx", f.gemmStridedBatched);
  return loaded;
}

} // namespace

const Cublas *cublas(std::string &reason) {
  static const Loaded loaded = load();
  reason = loaded.reason;
  return reason.empty() ? &loaded.functions : nullptr;
}

} // namespace fagen::lab

// fagen: loads cuBLAS at run time.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cublas_library.h"

#include <dlfcn.h>
#include <type_traits>

namespace fagen::lab {

namespace {

struct Loaded {
  Cublas functions{};
  std::string reason; ///< empty: every function is there
};

Loaded load() {
  Loaded loaded;
  void *library = nullptr;
  for (const char *name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so"})
    if (!library)
      library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    loaded.reason = "libcublas.so.13, .12 or .11 is not found; LD_LIBRARY_PATH can name its directory";
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

// fagen: NVRTC, loaded at run time from where nvrtc_places.h says.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compile/nvrtc.h"

#include "compile/nvrtc_places.h"
#include "error.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>

namespace fagen {
namespace {

using Program = struct _nvrtcProgram *;
using Result = int; // 0: success

struct Nvrtc {
  Result (*version)(int *major, int *minor);
  Result (*archCount)(int *count);
  Result (*archs)(int *archs);
  Result (*create)(Program *program, const char *source, const char *name, int headers, const char *const *texts,
                   const char *const *names);
  Result (*destroy)(Program *program);
  Result (*compile)(Program program, int count, const char *const *options);
  Result (*cubinSize)(Program program, size_t *size);
  Result (*cubin)(Program program, char *data);
  Result (*ptxSize)(Program program, size_t *size);
  Result (*ptx)(Program program, char *data);
  Result (*logSize)(Program program, size_t *size);
  Result (*log)(Program program, char *data);
  const char *(*errorString)(Result result);

  std::vector<int> known; // compute capabilities, ascending
  std::string problem;    // why it cannot be used; empty: it can
};

template <typename Function> void find(void *library, const char *symbol, Function &function, std::string &problem) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  if (!function)
    problem = std::string("NVRTC is too old: it has no ") + symbol;
}

/// NVRTC loads its builtins by their bare name; those that lie next to it are loaded first, so that it finds them
/// without a loader's path.
void loadBuiltins(const Nvrtc &n, const std::string &file) {
  size_t slash = file.rfind('/');
  int major = 0, minor = 0;
  if (slash == std::string::npos || n.version(&major, &minor) != 0)
    return;
  std::string builtins = "libnvrtc-builtins.so." + std::to_string(major) + "." + std::to_string(minor);
  dlopen((file.substr(0, slash + 1) + builtins).c_str(), RTLD_NOW | RTLD_LOCAL);
}

Nvrtc load() {
  Nvrtc n = {};
  void *library = nullptr;
  std::string file;
  for (const std::string &candidate : nvrtcPlaces(ownDirectory(), getenv))
    if (!library) {
      library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
      file = candidate;
    }
  if (!library) {
    n.problem =
        "no NVRTC: libnvrtc.so.13 and libnvrtc.so.12 cannot be loaded; pip install nvidia-cuda-nvrtc or the CUDA "
        "Toolkit brings it, and FAGEN_NVRTC names one that lies elsewhere";
    return n;
  }
  find(library, "nvrtcVersion", n.version, n.problem);
  find(library, "nvrtcGetNumSupportedArchs", n.archCount, n.problem);
  find(library, "nvrtcGetSupportedArchs", n.archs, n.problem);
  find(library, "nvrtcCreateProgram", n.create, n.problem);
  find(library, "nvrtcDestroyProgram", n.destroy, n.problem);
  find(library, "nvrtcCompileProgram", n.compile, n.problem);
  find(library, "nvrtcGetCUBINSize", n.cubinSize, n.problem);
  find(library, "nvrtcGetCUBIN", n.cubin, n.problem);
  find(library, "nvrtcGetPTXSize", n.ptxSize, n.problem);
  find(library, "nvrtcGetPTX", n.ptx, n.problem);
  find(library, "nvrtcGetProgramLogSize", n.logSize, n.problem);
  find(library, "nvrtcGetProgramLog", n.log, n.problem);
  find(library, "nvrtcGetErrorString", n.errorString, n.problem);
  if (!n.problem.empty())
    return n;
  loadBuiltins(n, file);
  int count = 0;
  if (n.archCount(&count) == 0 && count > 0) {
    n.known.resize(size_t(count));
    n.archs(n.known.data());
    std::sort(n.known.begin(), n.known.end());
  }
  return n;
}

const Nvrtc *nvrtc() {
  static const Nvrtc instance = load();
  if (instance.problem.empty())
    return &instance;
  fail(FAGEN_COMPILE, "%s", instance.problem.c_str());
  return nullptr;
}

/// The compiler's log from its first error on, cut to what an error text holds.
std::string logOf(const Nvrtc &n, Program program) {
  size_t size = 0;
  if (n.logSize(program, &size) != 0 || size <= 1)
    return "";
  std::string log(size, '\0');
  n.log(program, log.data());
  log.resize(size - 1);
  size_t error = log.find("error");
  if (error != std::string::npos)
    log.erase(0, log.rfind('\n', error) == std::string::npos ? 0 : log.rfind('\n', error) + 1);
  return log.substr(0, 3000);
}

} // namespace

std::string nvrtcVersion() {
  const Nvrtc *n = nvrtc();
  int major = 0, minor = 0;
  if (!n || n->version(&major, &minor) != 0)
    return "";
  return std::to_string(major) + "." + std::to_string(minor);
}

bool nvrtcSupports(uint32_t sm) { return nvrtcNearest(sm) == sm; }

uint32_t nvrtcNearest(uint32_t sm) {
  const Nvrtc *n = nvrtc();
  if (!n)
    return 0;
  auto above = std::upper_bound(n->known.begin(), n->known.end(), int(sm));
  return above == n->known.begin() ? 0 : uint32_t(above[-1]);
}

fagen_status nvrtcCompile(const std::string &source, const std::string &name, const std::vector<std::string> &flags,
                          bool ptx, std::string &binary) {
  const Nvrtc *n = nvrtc();
  if (!n)
    return FAGEN_COMPILE;
  std::vector<const char *> names, texts, options;
  for (unsigned i = 0; i < kEmbeddedHeaderCount; ++i) {
    names.push_back(kEmbeddedHeaders[i].name);
    texts.push_back(kEmbeddedHeaders[i].text);
  }
  for (const std::string &flag : flags)
    options.push_back(flag.c_str());
  Program program = nullptr;
  Result result = n->create(&program, source.c_str(), name.c_str(), int(names.size()), texts.data(), names.data());
  if (result)
    return fail(FAGEN_COMPILE, "cannot compile %s: %s", name.c_str(), n->errorString(result));
  result = n->compile(program, int(options.size()), options.data());
  size_t size = 0;
  if (!result)
    result = ptx ? n->ptxSize(program, &size) : n->cubinSize(program, &size);
  if (!result) {
    binary.resize(size);
    result = ptx ? n->ptx(program, binary.data()) : n->cubin(program, binary.data());
  }
  fagen_status status = FAGEN_OK;
  if (result)
    status = fail(FAGEN_COMPILE, "cannot compile %s: %s\n%s", name.c_str(), n->errorString(result),
                  logOf(*n, program).c_str());
  n->destroy(&program);
  return status;
}

} // namespace fagen

// fagen: a row's source to machine code, through the cache.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compile/compile.h"

#include "compile/cache.h"
#include "compile/nvrtc.h"
#include "error.h"
#include "verbose.h"

namespace fagen {
namespace {

/// The architecture to compile for, and whether the result is PTX: a GPU that NVRTC does not know gets PTX of the
/// nearest older one, which the driver finishes.
struct Arch {
  std::string flag;
  bool ptx = false;
};

fagen_status chooseArch(const fagen_row &row, uint32_t sm, Arch &arch) {
  if (row.exact || nvrtcSupports(sm)) {
    arch.flag = std::string("--gpu-architecture=") + (row.exact ? row.target : "sm_" + std::to_string(sm));
    return FAGEN_OK;
  }
  uint32_t nearest = nvrtcNearest(sm);
  if (nearest < row.first_sm)
    return fail(FAGEN_COMPILE, "cannot compile %s: NVRTC %s has no target from compute capability %u to %u",
                row.code->source_name, nvrtcVersion().c_str(), row.first_sm, sm);
  arch.flag = "--gpu-architecture=compute_" + std::to_string(nearest);
  arch.ptx = true;
  return FAGEN_OK;
}

/// "sm_89/l4_fp16_d64.cu" to "l4_fp16_d64".
std::string baseName(const std::string &path) {
  std::string name = path.substr(path.rfind('/') + 1);
  return name.substr(0, name.rfind('.'));
}

} // namespace

fagen_status compileRow(const fagen_row &row, uint32_t sm, Compiled &result) {
  const std::string version = nvrtcVersion();
  if (version.empty())
    return FAGEN_COMPILE;
  Arch arch;
  if (fagen_status status = chooseArch(row, sm, arch))
    return status;
  const std::vector<std::string> flags = {arch.flag, "-std=c++17", "-default-device", "-no-source-include"};
  const std::string source = row.code->source, name = baseName(row.code->source_name);

  std::vector<std::string_view> parts = {"nvrtc", version, source};
  parts.insert(parts.end(), flags.begin(), flags.end());
  for (unsigned i = 0; i < kEmbeddedHeaderCount; ++i)
    parts.insert(parts.end(), {kEmbeddedHeaders[i].name, kEmbeddedHeaders[i].text});
  const std::string key = hashParts(parts);

  const Cache cache = Cache::fromEnvironment();
  if (!cache.refusal().empty())
    verbose("not cached: %s", cache.refusal().c_str());
  if (cache.read(name, key, result.binary)) {
    verbose("%s: from the cache, %s.bin", row.variant, cache.stem(name, key).c_str());
    result.fromCache = true;
    return FAGEN_OK;
  }
  if (fagen_status status = nvrtcCompile(source, row.code->source_name, flags, arch.ptx, result.binary))
    return status;
  std::string why;
  const bool isKept = cache.write(name, key, source, result.binary, why);
  verbose("%s: compiled by NVRTC %s, %s; %s", row.variant, version.c_str(), arch.flag.c_str(),
          isKept ? (cache.stem(name, key) + ".bin").c_str() : ("not cached " + why).c_str());
  return FAGEN_OK;
}

} // namespace fagen

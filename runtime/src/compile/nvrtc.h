// fagen: NVRTC, found at run time.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/fagen.h>

#include <string>
#include <vector>

namespace fagen {

/// The device headers that the library carries, by the names that kernels include them by ("fagen/device/params.h").
/// Sorted by name.
struct EmbeddedHeader {
  const char *name;
  const char *text;
};
extern const EmbeddedHeader kEmbeddedHeaders[];
extern const unsigned kEmbeddedHeaderCount;

/// "13.0"; empty, with a reason for fagen_last_error, when NVRTC cannot be loaded.
std::string nvrtcVersion();

/// Whether NVRTC makes machine code for this compute capability.
bool nvrtcSupports(uint32_t sm);

/// The largest compute capability that NVRTC knows and that is at most `sm`; 0: none.
uint32_t nvrtcNearest(uint32_t sm);

/// Compiles source with the embedded headers and no include path, to machine code for `-arch=sm_...` and to PTX for
/// `compute_...`. COMPILE, with the head of the compiler's log as reason.
fagen_status nvrtcCompile(const std::string &source, const std::string &name, const std::vector<std::string> &flags,
                          bool ptx, std::string &binary);

} // namespace fagen

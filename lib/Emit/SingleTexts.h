// fagen: texts that the compiler carries for --emit=single.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace fagen {

struct EmbeddedHeader {
  const char *name;
  const char *text;
};

/// The device library, by the names that kernels include it by ("fagen/device/params.h").
extern const EmbeddedHeader kDeviceHeaders[];
extern const unsigned kDeviceHeaderCount;

/// lib/Emit/single: the header and the host's side of the source, with places to fill in.
extern const EmbeddedHeader kSingleTexts[];
extern const unsigned kSingleTextCount;

} // namespace fagen

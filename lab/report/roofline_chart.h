// fagen: the roofline: what a GPU allows at an intensity, and where kernels are.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "canvas.h"

namespace fagen::lab::page {

struct Roof {
  double teraflops; ///< of the matrix units
  double gigabytes; ///< of memory, a second
};

struct RooflinePoint {
  std::string label;
  double flops;        ///< of a launch
  double leastBytes;   ///< each tensor once
  double movedBytes;   ///< as measured; 0: not told, then drawn at the least
  double floorMicros;  ///< no launch can be faster
  double microseconds; ///< as measured
};

/// Log-log. A filled dot is what was measured, a hollow one above it the floor; a number refers to the legend.
Chart rooflineChart(const std::string &id, const std::string &title, const Roof &roof,
                    const std::vector<RooflinePoint> &points);

} // namespace fagen::lab::page

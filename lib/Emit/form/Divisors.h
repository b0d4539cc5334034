// fagen: numbers that places of elements are divided by, known when a kernel runs: the text has their reciprocals.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"

#include <optional>

namespace fagen {

/// What the text calls the reciprocal of `value`: a Divisor (fagen/device/divisor.h), made once for a tile of rows.
struct TileDivisor {
  std::string name;
  ir::Expr value;
};

/// Those of all maps of the kernel: numbers of the caller, and what is made of these and constants.
std::vector<TileDivisor> divisorsOf(const ir::Kernel &kernel);

/// The reciprocal by which floor_div or floor_mod divides here, where the text has one.
std::optional<TileDivisor> divisorOf(const ir::Kernel &kernel, const ir::Expr &division);

} // namespace fagen

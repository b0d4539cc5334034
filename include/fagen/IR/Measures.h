// fagen: constants that mean something to every kernel that has them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Other constants are numbers with a name. A kernel need not have any of these: what its ops say by themselves, such as
// the rows of a tile, is asked of them (fagen/IR/Queries.h).
#pragma once

#include "fagen/IR/IR.h"

#include <array>

namespace fagen::ir {

enum class Measure : uint8_t {
  TileRows,
  TileKeys,
  HeadDimQK,
  HeadDimV,
  Stages,
  Warps,
  Threads,
  RowWarps,
  KeyWarps,
  WarpRows,
  WarpKeys,
  VectorBytes,
  LoadRegisters,
  MathRegisters
};

struct MeasureInfo {
  Measure measure;
  llvm::StringLiteral name;
};

inline constexpr std::array kMeasures = {
    MeasureInfo{Measure::TileRows, "kTileRows"}, // of a CTA, at once
    MeasureInfo{Measure::TileKeys, "kTileKeys"},
    MeasureInfo{Measure::HeadDimQK, "kHeadDimQK"}, // columns of tiles
    MeasureInfo{Measure::HeadDimV, "kHeadDimV"},
    MeasureInfo{Measure::Stages, "kStages"}, // slots of rings
    MeasureInfo{Measure::Warps, "kWarps"},   // that multiply
    MeasureInfo{Measure::Threads, "kThreads"},
    MeasureInfo{Measure::RowWarps, "kRowWarps"}, // how warps divide a tile
    MeasureInfo{Measure::KeyWarps, "kKeyWarps"},
    MeasureInfo{Measure::WarpRows, "kWarpRows"}, // what each has of it
    MeasureInfo{Measure::WarpKeys, "kWarpKeys"},
    MeasureInfo{Measure::VectorBytes, "kVectorBytes"}, // that a thread moves at once
    MeasureInfo{Measure::LoadRegisters, "kLoadRegisters"},
    MeasureInfo{Measure::MathRegisters, "kMathRegisters"},
};

/// Measures that are the product of two others, where a kernel has all three.
struct MeasureProduct {
  Measure product, a, b;
};
inline constexpr MeasureProduct kMeasureProducts[] = {{Measure::Warps, Measure::RowWarps, Measure::KeyWarps},
                                                      {Measure::TileRows, Measure::RowWarps, Measure::WarpRows},
                                                      {Measure::TileKeys, Measure::KeyWarps, Measure::WarpKeys}};

constexpr llvm::StringRef nameOf(Measure measure) { return kMeasures[size_t(measure)].name; }
inline Expr variable(Measure measure) { return Expr::variable(nameOf(measure)); }

/// Nothing where the kernel does not say.
inline std::optional<int64_t> measureOf(const Kernel &kernel, Measure measure) {
  const llvm::StringRef name = nameOf(measure);
  return kernel.hasConstant(name) ? std::optional(kernel.constant(name)) : std::nullopt;
}

/// The number, by name where the measure is just that.
inline Expr byName(const Kernel &kernel, Measure measure, int64_t number) {
  return measureOf(kernel, measure) == number ? variable(measure) : constant(number);
}

/// a * b; by name where a measure of the kernel is their product.
inline Count productOf(const Kernel &kernel, const Count &a, const Count &b) {
  for (const MeasureProduct &each : kMeasureProducts)
    if (a.expr() == variable(each.a) && b.expr() == variable(each.b) && measureOf(kernel, each.product))
      return Count(a * b, variable(each.product));
  return Count(a * b);
}

} // namespace fagen::ir

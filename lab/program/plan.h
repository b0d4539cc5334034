// fagen: what a program of the IR needs to run: buffers, the kernels' argument, launches. Read from JSON.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "elements.h"
#include "size_expr.h"

#include <fagen/table.h>

#include <memory>

namespace fagen::lab {

struct OwnRow;

/// Global memory: a dense tensor, the last dimension the fastest.
struct ProgramBuffer {
  std::string name;
  Element element = Element::F16;
  std::vector<SizeExpr> shape;
  bool isWritten = false;    ///< by a kernel: begins as NaN, to be written before it is read
  bool isZeroed = false;     ///< begins as zeros: a counter
  bool isRestored = false;   ///< each run leaves it as it found it
  uint32_t promises = 0;     ///< of its integers: FAGEN_TENSOR_ASCENDING, _DISTINCT, _IN_RANGE
  int64_t low = 0, high = 0; ///< of the range
  std::string clocksOf;      ///< the launch whose warps leave records there; empty for other buffers
  unsigned alignment = 1;    ///< bytes that its rows begin at multiples of, as the kernels access them
};

/// A tensor map of a buffer, and the box that one copy moves. Dimension 0 is dense.
struct MapField {
  struct Dimension {
    SizeExpr size, stride; ///< elements
    unsigned box = 1;      ///< elements
  };
  std::vector<Dimension> dimensions; ///< 1 to 5
  unsigned swizzle = 0;              ///< bytes of a row: 0, 32, 64, 128
};

/// A member of the struct that every kernel of the program takes by value, in order, aligned as C++ does.
struct ParamField {
  enum Kind : uint8_t { Pointer, Stride, Int32, Int64, Float32, Map } kind = Pointer;
  unsigned buffer = 0;    ///< of Pointer, Stride and Map: its index
  unsigned dimension = 0; ///< of Stride: elements between neighbours along it, as int64
  SizeExpr value = {};    ///< of Int32 and Int64
  double number = 0;      ///< of Float32, where it has no name
  std::string name = {};  ///< of a Float32 that the user gives: its name
  MapField map = {};
};

/// Warps of each CTA.
struct ProgramRole {
  std::string name;
  int firstWarp = 0, warps = 0;
};

struct ProgramLaunch {
  std::string symbol;
  unsigned threads = 0, cluster = 1;
  SizeExpr sharedBytes, ctas;
  std::vector<ProgramRole> roles; ///< where warps leave clocks
  bool isResident = false;        ///< all its CTAs must run at once, as those of a persistent kernel do
};

/// Launches run one after the other; each sees what those before it wrote.
struct ProgramPlan {
  std::string name;
  std::string source; ///< path of the CUDA text
  std::string target; ///< sm_90a
  std::vector<ProgramBuffer> buffers;
  std::vector<ParamField> params;
  std::vector<ProgramLaunch> launches;
  std::shared_ptr<const OwnRow> own;  ///< where it stands alone
  const fagen_table *table = nullptr; ///< where it is a row: runs go by the row's recipe, as the runtime has it

  /// UserError with path and reason. `source` is relative to the plan's directory.
  static ProgramPlan load(const std::string &path);
  static ProgramPlan parse(const std::string &json, const std::string &name);

  /// The sizes, and the real numbers, that the user has to give.
  std::vector<std::string> sizeNames() const;
  std::vector<std::string> numberNames() const;
  /// The real numbers; UserError for one that the plan lacks, and for one that is not given.
  void setNumbers(const std::map<std::string, double> &numbers);
};

} // namespace fagen::lab

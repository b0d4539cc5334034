// fagen: the one argument of all kernels of a program with parameters of its own.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Members follow from what the kernels do: a tensor map for each box that bulk copies move, a pointer to each tensor
// that threads reach, strides of those that are strided, the sizes and the scalars. The text declares them in this
// order, and the plan lists them in the same.
#pragma once

#include "form/Divisors.h"

#include "fagen/IR/IR.h"

#include "llvm/ADT/StringSet.h"

namespace fagen {

/// A box of a tensor: what one bulk copy moves.
struct BoxShape {
  unsigned rowDimension = 0;                   ///< of the tensor
  unsigned rows = 0, columns = 0, swizzle = 0; ///< elements; bytes of a swizzled row, 0: none
  unsigned panels = 1;                         ///< of so many columns each, one after the other
  bool operator==(const BoxShape &other) const = default;
};

struct ProgramParam {
  enum Kind : uint8_t { Map, Pointer, Strides, Size, Scalar, Reciprocal, Clocks } kind = Size;
  std::string name;                   ///< of the member
  const ir::Buffer *tensor = nullptr; ///< of the first three
  BoxShape box = {};                  ///< of Map
  bool isReal = false;                ///< of Scalar: f32; else i32
  ir::Expr divisor = {};              ///< of Reciprocal: of sizes, integers and constants
  bool mayBeZero = false;             ///< of Reciprocal: then it is that of 1
  const ir::Kernel *kernel = nullptr; ///< of Clocks: whose warps leave them there
};

/// A tensor among the parameters, whichever kernels name it.
struct ProgramTensor {
  const ir::Buffer *buffer = nullptr; ///< of the first kernel that declares it
  bool isWritten = false;
};

class ProgramParams {
public:
  /// With clocks: a pointer for each kernel whose warps leave them.
  explicit ProgramParams(const ir::Program &program, bool hasClocks = false);

  const std::vector<ProgramParam> &fields() const { return params; }
  const std::vector<ProgramTensor> &tensors() const { return all; }
  bool hasMapOf(const ir::Buffer &tensor) const;
  /// The name of the map for the boxes of a bulk copy or store of a role.
  llvm::StringRef mapOf(const ir::Kernel &kernel, const ir::Role &role, const ir::Op &op) const;
  /// The member that the kernel's warps leave their clocks by; null where they leave none.
  const ProgramParam *clocksOf(const ir::Kernel &kernel) const;
  /// The reciprocals, as a text names them that holds the parameters by `holder`, "params.".
  TileDivisors divisors(const ir::Kernel &kernel, llvm::StringRef holder) const;

private:
  void addNames(const ir::Kernel &kernel);
  void addMaps(const ir::Kernel &kernel);
  void addPointers(const ir::Kernel &kernel);
  void addReciprocals(const ir::Kernel &kernel);
  void add(ProgramParam param);
  std::string freshName(const std::string &wanted) const;

  std::vector<ProgramParam> params;
  std::vector<ProgramTensor> all;
  llvm::StringSet<> declared; ///< what no map and no reciprocal is called
};

/// The box of a bulk copy or store. One box brings all panels of a tile whose rows are the tensor's from the first
/// column on, as each box has its price: they are a dimension of the map then, after that of rows.
BoxShape boxOf(const ir::Kernel &kernel, const ir::Role &role, const ir::Op &op);

/// Whether the op is a copy or store by threads of a matrix that parameters name.
bool isByAddress(const ir::Op &op);

} // namespace fagen

// fagen: values of forms as expressions of the IR.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Form/Use.h"
#include "fagen/IR/Expr.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <vector>

namespace fagen::form {

/// What the names of a form are in a kernel.
struct Names {
  llvm::function_ref<ir::Expr(Place)> place;
  std::vector<std::string> params; ///< of each param the scalar or the tensor
  bool keysExist = true;           ///< whether the value is of an element: else there may be no key at all
};

/// Lets are put in their places, bound params are numbers. An index that is not proved to lie inside its extent for
/// every element of a tile, those beyond the tensors' ends included, is clamped to it.
ir::Expr lower(const Node &node, const Use &use, const Names &names);

/// A score as what a fragment holds and a factor: score = unit * held, the unit positive and the same for all elements
/// of a tile, so that it joins the factor of exp2. Null `held`: the fragment's own scale * q . k, with `unit` the scale
/// times what is left. Rows of packed heads may be of several heads.
struct Scaled {
  NodePtr held;
  std::vector<NodePtr> units; ///< whose product the unit is, but for the scale
};
Scaled splitUnit(const Form &form, bool arePacked);

/// Whether each score is -inf: then no row sees any key.
bool hidesAll(const Use &use);

} // namespace fagen::form

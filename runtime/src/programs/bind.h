// fagen: a call of a program with everything that follows from it: numbers, extents, strides, workspace.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "recipe.h"

#include <fagen/device/tensor_map.h>

namespace fagen {

struct BoundTensor {
  fagen_named_tensor *given = nullptr; ///< null: in the workspace
  uint64_t offset = 0;                 ///< there
  int64_t extent[FAGEN_MAX_RANK] = {};
  int64_t stride[FAGEN_MAX_RANK] = {}; ///< elements
};

struct BoundCall {
  const char *program = nullptr;
  const fagen_recipe *recipe = nullptr;
  /// What expressions are computed from: sms, and each number. Of a real one 0.
  int64_t values[FAGEN_VAR_NUMBER_0 + FAGEN_MAX_NUMBERS] = {};
  float reals[FAGEN_MAX_NUMBERS] = {};
  BoundTensor tensors[FAGEN_MAX_TENSORS];
  uint64_t workspaceBytes = 0, zeroedBytes = 0; ///< the zeroed ones in front
  void *workspace = nullptr;

  const void *addressOf(uint32_t tensor) const {
    const BoundTensor &bound = tensors[tensor];
    return bound.given ? bound.given->data : static_cast<const char *>(workspace) + bound.offset;
  }
};

/// What a workspace of a program must be aligned to, and its parts are.
constexpr uint32_t kProgramWorkspaceAlignment = 256;

/// Reads a call for a program's row. Tensors of rank 0 are filled in with `mayFill`, and refused else; addresses are
/// not looked at. INVALID, UNSUPPORTED, MISALIGNED.
fagen_status bindCall(const fagen_row &row, const fagen_call &call, uint32_t sms, bool mayFill, BoundCall &bound);

/// Whether each tensor that has elements has an aligned address, and none that is written shares memory with another.
/// INVALID, MISALIGNED.
fagen_status checkAddresses(const BoundCall &bound);

/// The map of a recipe for this call.
device::TensorMapDescription describeMap(const BoundCall &bound, const fagen_recipe_map &map);

/// UNSUPPORTED where the driver would refuse a map. With addresses of 0.
fagen_status checkMaps(const BoundCall &bound);

/// CTAs of a launch. UNSUPPORTED where there would be more than a grid has.
fagen_status countCtas(const BoundCall &bound, const fagen_row &row, uint32_t launch, uint32_t &ctas);

/// Writes the kernels' argument. `encode(description, name, place)` makes a map; the first status that is not OK ends
/// it.
template <typename Encode> fagen_status packArgument(const BoundCall &bound, unsigned char *argument, Encode encode);

/// The value of an expression that checkRecipe accepted; none where it divides by 0.
inline std::optional<int64_t> valueOf(const BoundCall &bound, const fagen_expression &expression) {
  return evaluateWith(expression.ops, expression.size, bound.values);
}

/// Writes a field that is no map. INVALID where a value does not fit.
fagen_status packPlain(const BoundCall &bound, const fagen_recipe_field &field, unsigned char *place);

template <typename Encode> fagen_status packArgument(const BoundCall &bound, unsigned char *argument, Encode encode) {
  const fagen_recipe &recipe = *bound.recipe;
  fagen_status status = FAGEN_OK;
  for (uint32_t i = 0; i < recipe.field_count && !status; ++i) {
    const fagen_recipe_field &field = fieldAt(recipe, i);
    if (field.kind != FAGEN_FIELD_MAP) {
      status = packPlain(bound, field, argument + field.offset);
      continue;
    }
    const fagen_recipe_map &map = mapAt(recipe, field.index);
    status = encode(describeMap(bound, map), tensorAt(recipe, map.tensor).name, argument + field.offset);
  }
  return status;
}

} // namespace fagen

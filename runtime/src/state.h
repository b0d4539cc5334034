// fagen: what fagen_query leaves in a choice for fagen_run.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/params.h>
#include <fagen/table.h>

#include <cstring>
#include <type_traits>

namespace fagen {

struct ChoiceState {
  device::AttentionParams params; ///< all but the pointers
  uint32_t grid;                  ///< CTAs
};
static_assert(sizeof(ChoiceState) <= sizeof(fagen_choice::state), "fagen_choice.state is part of the ABI");
static_assert(std::is_trivially_copyable_v<ChoiceState>, "a choice is copied as bytes");

inline ChoiceState loadState(const fagen_choice &choice) {
  ChoiceState state;
  memcpy(&state, choice.state, sizeof(state));
  return state;
}
inline void storeState(const ChoiceState &state, fagen_choice &choice) { memcpy(choice.state, &state, sizeof(state)); }

} // namespace fagen

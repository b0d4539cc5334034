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
  uint32_t ctas;                  ///< of a launch of tiles whose keys are not split
  uint32_t overlapsLaunches;      ///< FAGEN_FLAG_PDL
  uint64_t cleared;               ///< bytes at the end of the workspace that are zeroed after the launches
};
static_assert(sizeof(ChoiceState) % 8 == 0 && sizeof(ChoiceState) + FAGEN_MAX_FORM_BYTES <= sizeof(fagen_choice::state),
              "fagen_choice.state is part of the ABI");
static_assert(std::is_trivially_copyable_v<ChoiceState>, "a choice is copied as bytes");

/// Calls `visit` with the numbers of a row's launches in the order in which they run, until it says false.
template <class Visit> void forEachLaunch(const fagen_row &row, Visit visit) {
  for (bool comesBefore : {true, false})
    for (uint32_t i = 0; i < row.launch_count; ++i)
      if ((row.launches[i].grid == FAGEN_GRID_KEY_TILES) == comesBefore && !visit(i))
        return;
}

/// CTAs of a launch.
inline uint32_t gridOf(const fagen_launch &launch, const ChoiceState &state) {
  const device::AttentionParams &p = state.params;
  if (launch.grid == FAGEN_GRID_ROWS) {
    uint64_t rows = uint64_t(p.batch) * uint64_t(p.heads) * uint64_t(p.seq_q), warps = launch.threads / 32;
    return uint32_t(warps ? (rows + warps - 1) / warps : 0);
  }
  if (launch.grid == FAGEN_GRID_KEY_TILES)
    return state.ctas * FAGEN_KEY_TILE_CTAS;
  return state.ctas * uint32_t(p.splits);
}

inline ChoiceState loadState(const fagen_choice &choice) {
  ChoiceState state;
  memcpy(&state, choice.state, sizeof(state));
  return state;
}
inline void storeState(const ChoiceState &state, fagen_choice &choice) { memcpy(choice.state, &state, sizeof(state)); }

/// After it, where the row is for a form: the form's part of the kernels' argument.
inline unsigned char *formBytes(fagen_choice &choice) {
  return reinterpret_cast<unsigned char *>(choice.state) + sizeof(ChoiceState);
}
inline const unsigned char *formBytes(const fagen_choice &choice) {
  return reinterpret_cast<const unsigned char *>(choice.state) + sizeof(ChoiceState);
}

} // namespace fagen

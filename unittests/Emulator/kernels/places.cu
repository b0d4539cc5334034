// fagen: where CTAs find themselves. Each writes batch, head, head of K and V, and first row.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fagen/device/params.h>
#include <fagen/device/ptx/global.h>
#include <fagen/device/tile/cta.h>

using namespace fagen::device;

__device__ __forceinline__ void write_place(const AttentionParams &params, const CtaPlace &place) {
  unsigned *const out = static_cast<unsigned *>(params.o) + 4 * ptx::cta_index();
  ptx::st_global_u32(out, place.batch);
  ptx::st_global_u32(out + 1, place.head);
  ptx::st_global_u32(out + 2, place.kv_head);
  ptx::st_global_u32(out + 3, place.row_begin);
}

extern "C" __global__ void in_order(const __grid_constant__ AttentionParams params) {
  write_place(params, locate_cta<16>(params));
}

extern "C" __global__ void longest_first(const __grid_constant__ AttentionParams params) {
  write_place(params, locate_cta<16, TileOrder::kLastTileFirst>(params));
}

extern "C" __global__ void longest_first_packed(const __grid_constant__ AttentionParams params) {
  write_place(params, locate_cta<16, TileOrder::kLastTileFirst, Rows::kOfGroup>(params));
}

extern "C" __global__ void by_ticket(const __grid_constant__ MappedAttentionParams params) {
  write_place(params, locate_tile<16>(params, longest_tile_first<16, 8192>(params, ptx::cta_index())));
}

extern "C" __global__ void all_by_ticket(const __grid_constant__ MappedAttentionParams params) {
  write_place(params, locate_tile<16>(params, longest_tile_first<16, 64, 3>(params, ptx::cta_index())));
}

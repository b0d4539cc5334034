// fagen: what the ptx functions call in the emulator: a table of C functions that the loaded kernel is given.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels never link with the emulator, so that one cached library serves every program. The thread that calls is
// known to the engine; addresses of shared memory are offsets from the CTA's base.
#pragma once

#include <fagen/device/ptx/site.h>
#include <fagen/device/tensor_map.h>

namespace fagen::device::ptx {

/// What mma multiplies.
enum class ElementType : int { kF16, kBf16, kE4m3 };

/// One product of wmma.
struct WmmaTypes {
  ElementType operand;
  bool is_half_accumulator; ///< f16; else f32
  bool is_column_b;         ///< B was loaded by columns; else by rows
};

/// One product of a warp group.
struct WgmmaForm {
  ElementType operand;
  unsigned registers; ///< of the accumulators, in each thread
  bool accumulate;
  bool is_mn_major_a, is_mn_major_b;

  friend bool operator==(const WgmmaForm &a, const WgmmaForm &b) {
    return a.operand == b.operand && a.registers == b.registers && a.accumulate == b.accumulate &&
           a.is_mn_major_a == b.is_mn_major_a && a.is_mn_major_b == b.is_mn_major_b;
  }
};

/// What the registers of fragments hold until they are written: a NaN of f32, and twice one of f16 and bf16. Arithmetic
/// hands it on; a value with which it leaves the registers is a finding. No instruction makes such a NaN.
inline constexpr unsigned kUninitialised = 0xffe7ffe7u;
inline constexpr unsigned short kUninitialisedHalf = 0xffe7u;

/// Counts up with every change of Engine; a kernel built against another one is refused.
inline constexpr unsigned kEngineVersion = 12;

struct Engine {
  unsigned version;

  int (*thread_index)();
  int (*cta_index)();
  int (*cta_count)();
  unsigned (*cluster_rank)();
  unsigned (*cluster_size)();
  void *(*shared_base)();

  void (*load_shared)(void *to, unsigned address, unsigned bytes, Site site);
  /// `from` is null for a lane that takes no part in its warp's store.
  void (*store_shared)(unsigned address, const void *from, unsigned bytes, Site site);
  void (*load_global)(void *to, const void *from, unsigned bytes, Site site);
  /// Element `index`, of `bytes` bytes, of the buffer that begins at `tensor`.
  void (*load_element)(void *to, const void *tensor, long long index, unsigned bytes, Site site);
  void (*store_global)(void *to, const void *from, unsigned bytes, Site site);
  unsigned (*atomic_inc)(unsigned *word, unsigned last, Site site);
  void (*fence_device)(Site site);
  void (*await_launches)(Site site);

  void (*copy_async)(unsigned target, const void *source, unsigned bytes, bool valid, Site site);
  void (*copy_commit)(Site site);
  void (*copy_wait)(unsigned pending, Site site);

  void (*load_matrices)(unsigned *words, unsigned address, bool transpose, Site site);
  void (*multiply)(float *d, const unsigned *a, unsigned b0, unsigned b1, ElementType type, Site site);
  void (*wmma_load)(unsigned *words, unsigned count, bool is_column, unsigned address, unsigned stride, Site site);
  void (*wmma_multiply)(void *d, const unsigned *a, const unsigned *b, WmmaTypes types, Site site);
  void (*wmma_store)(unsigned address, const void *d, bool is_half, unsigned stride, Site site);
  float (*shuffle_xor)(float value, int mask, Site site);
  bool (*vote_any)(bool predicate, Site site);

  void (*mbarrier_init)(unsigned barrier, int arrivals, Site site);
  void (*mbarrier_init_fence)(Site site);
  void (*mbarrier_arrive)(unsigned barrier, int bytes, Site site);
  void (*mbarrier_arrive_at)(unsigned barrier, unsigned rank, Site site);
  void (*mbarrier_wait)(unsigned barrier, unsigned parity, Site site);

  /// To the CTAs of the cluster whose bits are set, or where there are none to the thread's own.
  void (*tma_load)(unsigned target, const TensorMap *map, const int *at, int rank, unsigned barrier, unsigned ctas,
                   Site site);
  void (*tma_store)(const TensorMap *map, const int *at, int rank, unsigned source, Site site);
  void (*tma_commit)(Site site);
  void (*tma_wait)(unsigned pending, Site site);
  void (*fence_proxy_async)(Site site);

  /// `a` is null where A is in shared memory.
  void (*wgmma)(float *d, const unsigned *a, unsigned long long a_descriptor, unsigned long long b_descriptor,
                WgmmaForm form, Site site);
  void (*wgmma_fence)(Site site);
  void (*wgmma_commit)(Site site);
  void (*wgmma_wait)(unsigned pending, Site site);
  void (*setmaxnreg)(unsigned registers, bool increases, Site site);
  void (*store_matrices)(unsigned address, const unsigned *words, bool transpose, Site site);
  bool (*elect_one)(Site site);

  void (*cta_barrier)(Site site);
  void (*cluster_arrive)(Site site);
  void (*cluster_wait)(Site site);
  void (*warp_barrier)(Site site);
  void (*named_barrier)(int id, int threads, bool waits, Site site);

  /// Does not return: the CTA ends.
  void (*divide_by_zero)(long long dividend, Site site);
};

} // namespace fagen::device::ptx

#ifdef FAGEN_EMULATED_KERNEL
namespace fagen::device::ptx {
__attribute__((visibility("hidden"))) inline const Engine *engine = nullptr;
} // namespace fagen::device::ptx
#endif

// fagen: bulk tensor copies, in the emulator: a map holds its description.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/engine.h>

namespace fagen::device::ptx {

enum class CacheHint : unsigned long long {
  kNormal = 0x1000000000000000ull,
  kEvictFirst = 0x12F0000000000000ull,
  kEvictLast = 0x14F0000000000000ull
};

inline void tma_prefetch_map(const TensorMap &, Site = Site::here()) {}

template <int kRank>
inline void tma_load(unsigned target, const TensorMap &map, const int (&at)[kRank], unsigned barrier,
                     CacheHint = CacheHint::kNormal, Site site = Site::here()) {
  static_assert(kRank >= 2 && kRank <= 5, "a bulk tensor copy has 2 to 5 dimensions");
  engine->tma_load(target, &map, at, kRank, barrier, 0, site);
}

template <int kRank>
inline void tma_load_multicast(unsigned target, const TensorMap &map, const int (&at)[kRank], unsigned barrier,
                               unsigned short ctas, CacheHint = CacheHint::kNormal, Site site = Site::here()) {
  static_assert(kRank >= 2 && kRank <= 5, "a bulk tensor copy has 2 to 5 dimensions");
  engine->tma_load(target, &map, at, kRank, barrier, ctas, site);
}

template <int kRank>
inline void tma_store(const TensorMap &map, const int (&at)[kRank], unsigned source, Site site = Site::here()) {
  static_assert(kRank >= 2 && kRank <= 5, "a bulk tensor copy has 2 to 5 dimensions");
  engine->tma_store(&map, at, kRank, source, site);
}

inline void tma_commit(Site site = Site::here()) { engine->tma_commit(site); }
template <int kPending> inline void tma_wait_read(Site site = Site::here()) { engine->tma_wait(kPending, site); }
template <int kPending> inline void tma_wait(Site site = Site::here()) { engine->tma_wait(kPending, site); }
inline void fence_proxy_async(Site site = Site::here()) { engine->fence_proxy_async(site); }

} // namespace fagen::device::ptx

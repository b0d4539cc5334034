// fagen: what the CUDA compiler knows without being told; included before every kernel that the emulator compiles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#define FAGEN_EMULATED_KERNEL 1
#define __global__ __attribute__((visibility("default")))
#define __device__
#define __host__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)

// GCC 8 to 10 have no __builtin_bit_cast; kernels use it where a value is known at run time.
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 11
namespace fagen::device {
template <typename To, typename From> To bitsAs(const From &from) {
  static_assert(sizeof(To) == sizeof(From), "of one size");
  To to;
  __builtin_memcpy(&to, &from, sizeof(to));
  return to;
}
} // namespace fagen::device
#define __builtin_bit_cast(To, from) ::fagen::device::bitsAs<To>(from)
#endif

#include <fagen/device/ptx/engine.h>

/// Called once after loading. False when the kernel was built against another engine.
extern "C" __attribute__((visibility("default"), used)) bool
fagen_emulator_bind(const fagen::device::ptx::Engine *engine) {
  fagen::device::ptx::engine = engine;
  return engine->version == fagen::device::ptx::kEngineVersion;
}

namespace fagen::emulator {

/// What -fsanitize=integer-divide-by-zero tells of a division; the ABI of the compilers' sanitizers.
struct DivisionData {
  const char *file;
  unsigned line, column;
  const void *type;
};

} // namespace fagen::emulator

/// Compiled code calls it before it divides by zero. The operands are values of at most 64 bits.
extern "C" __attribute__((used, noreturn)) void __ubsan_handle_divrem_overflow_abort(void *data, void *dividend,
                                                                                     void *) {
  const auto &place = *static_cast<const fagen::emulator::DivisionData *>(data);
  fagen::device::ptx::engine->divide_by_zero(reinterpret_cast<long long>(dividend),
                                             {place.file, static_cast<int>(place.line)});
  __builtin_unreachable();
}

// fagen: who this thread is, in the emulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/engine.h>

namespace fagen::device::ptx {

// The answers never change while a thread runs, and each emulated thread has its own stack frame of the kernel: the
// compiler may keep them.
__attribute__((const, noinline)) inline int thread_index() { return engine->thread_index(); }
__attribute__((const, noinline)) inline int cta_index() { return engine->cta_index(); }
__attribute__((const, noinline)) inline int cta_count() { return engine->cta_count(); }
inline int lane_index() { return thread_index() % 32; }
inline int warp_index() { return thread_index() / 32; }

} // namespace fagen::device::ptx

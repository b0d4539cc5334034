// fagen: which kernel computes a call: asked once for calls of one key, then remembered.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "call.h"

#include <atomic>
#include <memory>
#include <vector>

struct fagen_table;

namespace fagen::torch {

using Tables = std::vector<const fagen_table *>;
using Emulator = fagen_status (*)(const fagen_problem *problem, const fagen_tensors *tensors, char *error,
                                  size_t errorSize);

/// A kernel set's number in calls, or -1 when there are too many. Tables must live on.
int addKernels(Tables tables);

/// Who computes for tensors on the CPU; null: nobody.
void setEmulator(Emulator computes);

/// Calls `each` with every kernel that was launched, and how often.
void tellCounts(void (*each)(const char *variant, const char *target, uint64_t launches));

/// The answer for all calls of one key: checked, and on a GPU compiled and loaded.
struct Settled {
  Key key;
  fagen_problem problem;
  std::vector<fagen_arg> args;    ///< of the problem's form; a run brings its own pointers
  fagen_choice choice;            ///< on a GPU
  fagen_device *device = nullptr; ///< null: the CPU
  const void *context = nullptr;  ///< the device's
  std::atomic<uint64_t> *launches = nullptr;
};

/// Asks for a call's kernel. Fails where there is none.
std::shared_ptr<const Settled> settle(const Call &call, const Key &key);

/// Computes a call of the settled one's key.
void run(const Settled &settled, const Call &call);

/// Computes a call; what it takes is remembered by this thread.
void attend(const Call &call);

/// What this thread remembers of a call, until it asks again; null: nothing.
const Settled *findSettled(const Call &call);

} // namespace fagen::torch

// fagen: finding PyTorch's C++ functions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "internals.h"

#include <dlfcn.h>

namespace fagen::torch {

static void *torch = nullptr; ///< dlopen's handle

static const void *findKeys() { return dlsym(torch, "_ZN3c104impl26raw_local_dispatch_key_setE"); }

bool Internals::load(const char *library) {
  torch = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  if (!torch)
    return false;
#define FAGEN_FIND(result, name, parameters, mangled)                                                                  \
  name = reinterpret_cast<result(*) parameters>(dlsym(torch, mangled));                                                \
  if (!name)                                                                                                           \
    return false;
  FAGEN_TORCH_INTERNALS(FAGEN_FIND)
#undef FAGEN_FIND
  undefined = static_cast<const TensorImpl *>(dlsym(torch, "_ZN3c1019UndefinedTensorImpl10_singletonE"));
  return undefined && findKeys();
}

uint64_t keysOfThread() {
  // A variable of each thread: dlsym finds this one's. What is added stands in its first word.
  thread_local const auto *const keys = static_cast<const uint64_t *>(findKeys());
  return *keys;
}

} // namespace fagen::torch

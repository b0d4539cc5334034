// fagen: what calls at once need of PyTorch beyond its C shim.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// C++ functions of its libraries, found by their mangled names, which say what they take. PyTorch promises none of
// them: where one is missing, calls go through its operators.
#pragma once

#include "shim.h"

namespace fagen::torch {

using TensorImpl = struct C10TensorImpl; ///< what a TensorHandle points to a pointer of

// X(result, name, parameters, mangled)
#define FAGEN_TORCH_INTERNALS(X)                                                                                       \
  X(bool, hasStorage, (const TensorImpl *), "_ZNK3c1010TensorImpl11has_storageEv")                                     \
  X(bool, requiresGrad, (const TensorImpl *), "_ZNK3c1010TensorImpl13requires_gradEv")                                 \
  X(bool, isNegative, (TensorHandle), "_ZN2at6native6is_negERKNS_6TensorE")                                            \
  X(int64_t, functionModes, (), "_ZN2at4impl22PythonTorchFunctionTLS9stack_lenEv")                                     \
  X(bool, hasCallbacks, (), "_ZN2at12hasCallbacksEv")                                                                  \
  X(TensorHandle, forwardGradient, (const TensorImpl *, uint64_t, TensorHandle),                                       \
    "_ZNK3c1010TensorImpl8_fw_gradEmRKN2at10TensorBaseE")                                                              \
  X(void, bumpVersion, (TensorHandle), "_ZN5torch8autograd4impl12bump_versionERKN2at6TensorE")                         \
  X(bool, isAutocast, (int8_t), "_ZN2at8autocast19is_autocast_enabledEN3c1010DeviceTypeE")                             \
  X(int8_t, autocastType, (int8_t), "_ZN2at8autocast18get_autocast_dtypeEN3c1010DeviceTypeE")                          \
  X(struct PythonObject *, wrap, (TensorHandle), "_Z16THPVariable_WrapON2at10TensorBaseE")

struct Internals {
#define FAGEN_DECLARE(result, name, parameters, mangled) result(*name) parameters = nullptr;
  FAGEN_TORCH_INTERNALS(FAGEN_DECLARE)
#undef FAGEN_DECLARE

  const TensorImpl *undefined = nullptr; ///< of a tensor that is none

  /// Finds all in this library and those that it needs: libtorch_python.so, which is loaded already.
  bool load(const char *library);
};

/// The dispatch keys that this thread adds to those of tensors: 0 by default, others under modes, functorch's
/// transforms, tracing, in inference mode. Valid once load() has succeeded.
uint64_t keysOfThread();

} // namespace fagen::torch

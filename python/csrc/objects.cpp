// fagen: finding Python's functions; tensors of Python objects.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "objects.h"

#include <dlfcn.h>

namespace fagen::torch {
namespace {

Python interpreter;
Internals ofTorch;
Object tensorType = nullptr; ///< torch.Tensor
size_t tensorPlace = 0;      ///< in bytes from an object's begin

bool loadPython() {
#define FAGEN_FIND(result, name, parameters)                                                                           \
  interpreter.name = reinterpret_cast<result(*) parameters>(dlsym(RTLD_DEFAULT, #name));                               \
  if (!interpreter.name)                                                                                               \
    return false;
  FAGEN_PYTHON_FUNCTIONS(FAGEN_FIND)
#undef FAGEN_FIND
  interpreter.yes = static_cast<Object>(dlsym(RTLD_DEFAULT, "_Py_TrueStruct"));
  interpreter.no = static_cast<Object>(dlsym(RTLD_DEFAULT, "_Py_FalseStruct"));
  interpreter.none = static_cast<Object>(dlsym(RTLD_DEFAULT, "_Py_NoneStruct"));
  return interpreter.yes && interpreter.no && interpreter.none;
}

/// A tensor is a pointer to its TensorImpl: it lies where this stands. False unless that is one place.
bool findPlace(const ProbeTensor &probe) {
  const auto *const words = reinterpret_cast<const TensorImpl *const *>(probe.object);
  int found = 0;
  for (size_t i = 0; i < probe.bytes / sizeof(*words); ++i)
    if (words[i] == probe.impl) {
      tensorPlace = i * sizeof(*words);
      ++found;
    }
  return found == 1;
}

TensorHandle tensorOf(Object object) {
  return reinterpret_cast<TensorHandle>(reinterpret_cast<char *>(object) + tensorPlace);
}

const TensorImpl *implOf(TensorHandle tensor) { return *reinterpret_cast<const TensorImpl *const *>(tensor); }

bool isPlainTensor(Object object) {
  const Object type = interpreter.PyObject_Type(object);
  interpreter.Py_DecRef(type); // it lives on: the object has it
  return type == tensorType && ofTorch.hasStorage(implOf(tensorOf(object))) && !ofTorch.isNegative(tensorOf(object));
}

} // namespace

const Python &python() { return interpreter; }

const Internals &internals() { return ofTorch; }

bool loadObjects(const char *library, const ProbeTensor &probe) {
  tensorType = probe.type;
  return loadPython() && ofTorch.load(library) && findPlace(probe);
}

Object pairOf(Object first, Object second) {
  const Object pair = interpreter.PyTuple_New(2);
  interpreter.PyTuple_SetItem(pair, 0, first);
  interpreter.PyTuple_SetItem(pair, 1, second);
  return pair;
}

bool readView(Object object, View &view) {
  if (!isPlainTensor(object))
    return false;
  view = viewOf(tensorOf(object));
  return view.rank == 4 && view.data;
}

bool isDifferentiated(Object tensor) {
  const TensorHandle handle = tensorOf(tensor);
  if (shim().aoti_torch_grad_mode_is_enabled() && ofTorch.requiresGrad(implOf(handle)))
    return true;
  constexpr uint64_t kOnlyLevel = 0;
  return implOf(ofTorch.forwardGradient(implOf(handle), kOnlyLevel, handle)) != ofTorch.undefined;
}

void noteChange(TensorHandle tensor) {
  if (ofTorch.bumpVersion)
    ofTorch.bumpVersion(tensor);
}

void noteChange(Object tensor) { noteChange(tensorOf(tensor)); }

Object objectOf(Tensor tensor) { return ofTorch.wrap(tensor.get()); } // which empties it

} // namespace fagen::torch

// fagen: Python's objects, and PyTorch's tensors among them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Python's functions are found in the process: neither headers nor libraries of Python are needed to build this, and
// one file serves all its versions. Where a Python object keeps its tensor is read off one of which that is known.
#pragma once

#include "internals.h"

#include <cstddef>

namespace fagen::torch {

using Object = struct PythonObject *; ///< PyObject *

/// As Python.h has it.
struct MethodDefinition {
  const char *name;
  Object (*function)(Object self, const Object *arguments, intptr_t count);
  int flags;
  const char *doc;
};
constexpr int kFastCall = 0x0080;

// X(result, name, parameters)
#define FAGEN_PYTHON_FUNCTIONS(X)                                                                                      \
  X(Object, PyCFunction_NewEx, (MethodDefinition *, Object, Object))                                                   \
  X(Object, PyObject_Type, (Object))                                                                                   \
  X(int, PyObject_IsTrue, (Object))                                                                                    \
  X(double, PyFloat_AsDouble, (Object))                                                                                \
  X(long long, PyLong_AsLongLong, (Object))                                                                            \
  X(const char *, PyUnicode_AsUTF8, (Object))                                                                          \
  X(Object, PyTuple_New, (intptr_t))                                                                                   \
  X(int, PyTuple_SetItem, (Object, intptr_t, Object))                                                                  \
  X(Object, PyErr_Occurred, ())                                                                                        \
  X(void, PyErr_Clear, ())                                                                                             \
  X(void, Py_IncRef, (Object))                                                                                         \
  X(void, Py_DecRef, (Object))

struct Python {
#define FAGEN_DECLARE(result, name, parameters) result(*name) parameters = nullptr;
  FAGEN_PYTHON_FUNCTIONS(FAGEN_DECLARE)
#undef FAGEN_DECLARE
  Object yes = nullptr, no = nullptr, none = nullptr; ///< True, False, None
};

/// Valid once loadObjects has succeeded.
const Python &python();

/// A Python object of torch.Tensor, whose TensorImpl lies at `impl`.
struct ProbeTensor {
  Object type, object;
  size_t bytes; ///< of the object
  const TensorImpl *impl;
};

/// Finds Python's functions, PyTorch's internals in this library (Internals::load), and the place of tensors in their
/// objects. False where something is missing.
bool loadObjects(const char *library, const ProbeTensor &probe);

const Internals &internals();

/// One more reference.
inline Object kept(Object object) {
  python().Py_IncRef(object);
  return object;
}

/// A tuple that owns these.
Object pairOf(Object first, Object second);

/// The tensor of an object, as a view. False where it is no tensor of four dimensions, or more than its memory:
/// subclasses, tensors without memory of their own (functorch's, functional ones), negative views.
bool readView(Object object, View &view);

/// Whether autograd wants to know what is computed from this object, a tensor: a gradient is recorded, or it has a
/// tangent of forward-mode differentiation.
bool isDifferentiated(Object tensor);

/// Tells autograd that a tensor is written: its version moves. Where this PyTorch lacks what that takes the Python
/// caller does so. Fails for an inference tensor outside of inference mode.
void noteChange(TensorHandle tensor);
void noteChange(Object tensor);

/// The Python object of a new tensor.
Object objectOf(Tensor tensor);

} // namespace fagen::torch

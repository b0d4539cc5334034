// fagen: calls that do not go through PyTorch's dispatcher.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// fagen_torch_direct makes a Python function that computes into `out`:
//   direct(q, k, v, out, scale, causal, bshd, kernels) -> bool   by what this thread remembers of such a call
//   direct(q, k, v, out, plan) -> bool                           by the plan of this number
// It says False, and has done nothing, where nothing is remembered, the tensors are not as planned, and for all that
// the dispatcher may treat otherwise: subclasses, tensors without memory of their own (functorch's, functional ones),
// negative views. The caller then calls an operator. Modes of PyTorch are the caller's to look at.
//
// Tensors are read by PyTorch's table of DLPack's exchange. Python's functions are found in the process: neither
// headers nor libraries of Python are needed to build this, and one file serves all its versions.
#include "plans.h"

#include <dlfcn.h>

namespace fagen::torch {
namespace {

using Object = struct PythonObject *; ///< PyObject *

// As dlpack.h has them.
struct DLTensor {
  void *data;
  int32_t deviceType, deviceIndex;
  int32_t rank;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byteOffset;
};

struct DLExchange {
  uint32_t major, minor;
  void *older;
  void *allocate, *fromPython, *toPython;
  int (*readTensor)(void *object,
                    DLTensor *tensor); ///< 0: it is read, and stays the object's; else Python's error is set
};

enum { kDLCpu = 1, kDLCuda = 2 };
enum { kDLFloat = 2, kDLBfloat = 4 };

// As Python.h has it.
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
  X(Object, PyObject_VectorcallMethod, (Object, const Object *, size_t, Object))                                       \
  X(Object, PyUnicode_InternFromString, (const char *))                                                                \
  X(int, PyObject_IsTrue, (Object))                                                                                    \
  X(double, PyFloat_AsDouble, (Object))                                                                                \
  X(long long, PyLong_AsLongLong, (Object))                                                                            \
  X(Object, PyErr_Occurred, ())                                                                                        \
  X(void, PyErr_Clear, ())                                                                                             \
  X(void, Py_IncRef, (Object))                                                                                         \
  X(void, Py_DecRef, (Object))

struct Python {
#define FAGEN_DECLARE(result, name, parameters) result(*name) parameters = nullptr;
  FAGEN_PYTHON_FUNCTIONS(FAGEN_DECLARE)
#undef FAGEN_DECLARE
  Object yes = nullptr, no = nullptr, isNegative = nullptr; ///< True, False, "is_neg"
  Object tensorType = nullptr;                              ///< torch.Tensor
  const DLExchange *exchange = nullptr;

  bool load() {
#define FAGEN_FIND(result, name, parameters)                                                                           \
  name = reinterpret_cast<result(*) parameters>(dlsym(RTLD_DEFAULT, #name));                                           \
  if (!name)                                                                                                           \
    return false;
    FAGEN_PYTHON_FUNCTIONS(FAGEN_FIND)
#undef FAGEN_FIND
    yes = static_cast<Object>(dlsym(RTLD_DEFAULT, "_Py_TrueStruct"));
    no = static_cast<Object>(dlsym(RTLD_DEFAULT, "_Py_FalseStruct"));
    isNegative = PyUnicode_InternFromString("is_neg");
    return yes && no && isNegative;
  }
};

Python python;

bool isPlainTensor(Object object) {
  const Object type = python.PyObject_Type(object);
  python.Py_DecRef(type); // it lives on: the object has it
  if (type != python.tensorType)
    return false;
  const Object said = python.PyObject_VectorcallMethod(python.isNegative, &object, 1, nullptr);
  if (!said)
    return false;
  python.Py_DecRef(said); // True and False are never gone
  return said == python.no;
}

/// The tensor as the shim would tell it. False where it has no memory, or is of no type or device that kernels know.
bool readView(Object object, View &view) {
  DLTensor tensor = {};
  if (!isPlainTensor(object) || python.exchange->readTensor(object, &tensor) || !tensor.data)
    return false;
  const bool isHalf = tensor.code == kDLFloat && tensor.bits == 16 && tensor.lanes == 1;
  const bool isBfloat = tensor.code == kDLBfloat && tensor.bits == 16 && tensor.lanes == 1;
  const bool isCuda = tensor.deviceType == kDLCuda;
  if (!(isHalf || isBfloat) || !(isCuda || tensor.deviceType == kDLCpu))
    return false;
  view.rank = tensor.rank;
  view.sizes = tensor.shape;
  view.strides = tensor.strides;
  view.dtype = isHalf ? shim().aoti_torch_dtype_float16() : shim().aoti_torch_dtype_bfloat16();
  view.deviceType = isCuda ? shim().aoti_torch_device_type_cuda() : shim().aoti_torch_device_type_cpu();
  view.deviceIndex = isCuda ? tensor.deviceIndex : kIndexOfCpu;
  view.data = static_cast<char *>(tensor.data) + tensor.byteOffset;
  return true;
}

/// Scale, causal, bshd and kernels.
bool readOptions(const Object *arguments, Options &options) {
  options.scale = python.PyFloat_AsDouble(arguments[0]);
  options.causal = python.PyObject_IsTrue(arguments[1]);
  options.bshd = python.PyObject_IsTrue(arguments[2]);
  options.kernels = python.PyLong_AsLongLong(arguments[3]);
  return !python.PyErr_Occurred();
}

constexpr intptr_t kByOptions = 8, kByPlan = 5; ///< how many arguments there are

bool computeDirectly(const Object *arguments, intptr_t count) {
  Call call = {};
  View *const views[] = {&call.q, &call.k, &call.v, &call.o};
  for (int i = 0; i < 4; ++i)
    if (!readView(arguments[i], *views[i]) || views[i]->rank != 4)
      return false;
  if (count == kByOptions)
    return readOptions(arguments + 4, call.options) && attendIfSettled(call);
  const Plan plan = planOf(python.PyLong_AsLongLong(arguments[4]));
  call.options = plan.options;
  return runAsPlanned(plan, call);
}

/// What fails here is done again by the operator, which says why.
Object direct(Object, const Object *arguments, intptr_t count) {
  bool done = false;
  try {
    done = (count == kByOptions || count == kByPlan) && computeDirectly(arguments, count);
  } catch (...) {
  }
  if (!done)
    python.PyErr_Clear();
  const Object result = done ? python.yes : python.no;
  python.Py_IncRef(result);
  return result;
}

} // namespace
} // namespace fagen::torch

using namespace fagen::torch;

/// The function above, for tensors of this type by this table of DLPack's exchange; the caller has Python's lock and
/// owns the result. Null where this Python or the table lacks what it takes. Once a process, behind
/// fagen_torch_register.
extern "C" FAGEN_API void *fagen_torch_direct(void *tensorType, const void *exchange) {
  static MethodDefinition definition = {"direct", direct, kFastCall, nullptr};
  python.tensorType = static_cast<Object>(tensorType);
  python.exchange = static_cast<const DLExchange *>(exchange);
  if (!exchange || python.exchange->major != 1 || !python.load())
    return nullptr;
  return python.PyCFunction_NewEx(&definition, nullptr, nullptr);
}

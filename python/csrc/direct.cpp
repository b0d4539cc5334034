// fagen: calls at once, that do not go through PyTorch's dispatcher.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// fagen_torch_direct makes two Python functions:
//   at_once(name, q, k, v, out, scale, causal, bshd, lse, kernels) -> (O, LSE or None), or None
//     by what this thread remembers of such a call, which is counted by this name. `out` and `scale` may be None.
//   planned(q, k, v, out, plan) -> bool
//     by the plan of this number
// They say None and False, and have done nothing, where nothing is remembered, the tensors are not as planned, and for
// all that the dispatcher may treat otherwise: under modes, transforms, tracing and profilers, for tensors that are
// more than memory, for those that autocast casts, and where a gradient is wanted, forward or backward. The caller then
// calls an operator, which says what is wrong.
#include "objects.h"
#include "plans.h"

#include <array>
#include <cmath>
#include <mutex>

namespace fagen::torch {
namespace {

uint64_t inferenceKeys = 0; ///< keysOfThread() in inference mode and no other; 0: not known

/// Whether nobody wants to see the operators that this thread calls.
bool isUnwatched() {
  const uint64_t keys = keysOfThread();
  return (keys == 0 || keys == inferenceKeys) && internals().functionModes() == 0 && !internals().hasCallbacks();
}

/// Whether autocast makes other tensors of the inputs.
bool isCast(const Call &call) {
  const auto device = static_cast<int8_t>(call.q.deviceType);
  if (!internals().isAutocast(device))
    return false;
  const int32_t type = internals().autocastType(device);
  return call.q.dtype != type || call.k.dtype != type || call.v.dtype != type;
}

bool readInputs(const Object *arguments, Call &call) {
  if (!isUnwatched() || !readView(arguments[0], call.q) || !readView(arguments[1], call.k) ||
      !readView(arguments[2], call.v))
    return false;
  if (isCast(call))
    return false;
  return !(isDifferentiated(arguments[0]) || isDifferentiated(arguments[1]) || isDifferentiated(arguments[2]));
}

/// The output that the caller gave.
bool readOutput(Object object, Call &call) { return readView(object, call.o) && !isDifferentiated(object); }

/// Before it is written: as the operators do.
void checkWrite(Object output, const Call &call) {
  refuseOverlap(call);
  noteChange(output);
}

/// Calls of one name, counted. The names are few, and live as long as the process.
struct Computed {
  Object name = nullptr;
  std::atomic<uint64_t> calls = 0;
};
constexpr size_t kMostNames = 64;
std::array<Computed, kMostNames> computed;
std::atomic<size_t> nameCount = 0;

/// Null where there are too many names.
Computed *findName(Object name) {
  static std::mutex mutex;
  auto find = [&]() -> Computed * {
    for (size_t i = 0, end = nameCount.load(std::memory_order_acquire); i < end; ++i)
      if (computed[i].name == name)
        return &computed[i];
    return nullptr;
  };
  if (Computed *known = find())
    return known;
  std::lock_guard lock(mutex);
  const size_t number = nameCount.load(std::memory_order_relaxed);
  if (Computed *known = find(); known || number == kMostNames)
    return known;
  computed[number].name = kept(name);
  nameCount.store(number + 1, std::memory_order_release);
  return &computed[number];
}

bool isTrue(Object object) { return python().PyObject_IsTrue(object) == 1; }

/// Scale, causal and bshd; and the kernels' number.
Options readOptions(const Object *arguments, Object kernels) {
  const bool isDefault = arguments[0] == python().none;
  return {isDefault ? std::nullopt : std::optional(python().PyFloat_AsDouble(arguments[0])), isTrue(arguments[1]),
          isTrue(arguments[2]), python().PyLong_AsLongLong(kernels)};
}

/// The arguments of at_once after the name. Null: not done.
Object computeAtOnce(const Object *arguments) {
  Call call = {};
  if (!readInputs(arguments, call))
    return nullptr;
  call.options = readOptions(arguments + 4, arguments[8]);
  const bool isGiven = arguments[3] != python().none, wantsLse = isTrue(arguments[7]);
  if (python().PyErr_Occurred() || (isGiven && !readOutput(arguments[3], call)))
    return nullptr;
  Tensor o = isGiven ? Tensor() : makeOutput(call), lse = wantsLse ? makeLse(call) : Tensor();
  const Settled *const settled = findSettled(call);
  if (!settled)
    return nullptr;
  if (isGiven)
    checkWrite(arguments[3], call);
  run(*settled, call);
  return pairOf(isGiven ? kept(arguments[3]) : objectOf(std::move(o)),
                wantsLse ? objectOf(std::move(lse)) : kept(python().none));
}

Object atOnce(Object, const Object *arguments, intptr_t count) {
  Object result = nullptr;
  try {
    Computed *const name = count == 10 ? findName(arguments[0]) : nullptr;
    result = name ? computeAtOnce(arguments + 1) : nullptr;
    if (result)
      name->calls.fetch_add(1, std::memory_order_relaxed);
  } catch (...) { // the operator says why
  }
  if (result)
    return result;
  python().PyErr_Clear();
  return kept(python().none);
}

bool computePlanned(const Object *arguments) {
  Call call = {};
  if (!readInputs(arguments, call) || !readOutput(arguments[3], call))
    return false;
  const Plan plan = planOf(python().PyLong_AsLongLong(arguments[4]));
  call.options = plan.options;
  if (!isAsPlanned(plan, call))
    return false;
  checkWrite(arguments[3], call);
  run(*plan.settled, call);
  return true;
}

Object planned(Object, const Object *arguments, intptr_t count) {
  bool done = false;
  try {
    done = count == 5 && computePlanned(arguments);
  } catch (...) { // the operator says why
  }
  if (!done)
    python().PyErr_Clear();
  return kept(done ? python().yes : python().no);
}

} // namespace
} // namespace fagen::torch

using namespace fagen::torch;

extern "C" {
/// A tuple of both functions; the caller has Python's lock and owns it. Null where this Python or PyTorch lacks what
/// they take. `library` is libtorch_python.so's path; `tensor` is a torch.Tensor of `tensorBytes`, and `impl` its
/// TensorImpl. Once a process, after fagen_torch_register.
FAGEN_API void *fagen_torch_direct(const char *library, void *tensorType, void *tensor, size_t tensorBytes,
                                   const void *impl) {
  static MethodDefinition definitions[] = {{"at_once", atOnce, kFastCall, nullptr},
                                           {"planned", planned, kFastCall, nullptr}};
  const ProbeTensor probe = {static_cast<Object>(tensorType), static_cast<Object>(tensor), tensorBytes,
                             static_cast<const TensorImpl *>(impl)};
  if (!loadObjects(library, probe))
    return nullptr;
  return pairOf(python().PyCFunction_NewEx(&definitions[0], nullptr, nullptr),
                python().PyCFunction_NewEx(&definitions[1], nullptr, nullptr));
}

/// Learns what keysOfThread() is in inference mode: called outside of it, then in it.
FAGEN_API void fagen_torch_note_keys(bool isInference) {
  thread_local bool isPlain = false;
  if (isInference && isPlain)
    inferenceKeys = keysOfThread();
  isPlain = !isInference && keysOfThread() == 0;
}

/// Calls `each` with every name by which calls at once were made, and how many.
FAGEN_API void fagen_torch_computed(void (*each)(const char *name, uint64_t calls)) {
  for (size_t i = 0, end = nameCount.load(std::memory_order_acquire); i < end; ++i)
    each(python().PyUnicode_AsUTF8(computed[i].name), computed[i].calls.load(std::memory_order_relaxed));
}
}

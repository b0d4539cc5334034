// fagen: PyTorch's operators.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors are [batch, heads, rows, columns], or [batch, rows, heads, columns] where `bshd`; their strides go to the
// kernel as they are. `scale` is 1 / sqrt(head_dim) where it is None. `kernels` is a number of fagen_torch_add_kernels.
//   attention      O and LSE [batch, heads, rows], which is empty unless `lse`; fagen/torch.py gives it a gradient
//   attention_out  into `out`, and into `lse` unless that is empty
//   _forward       O alone, and _forward_lse O and LSE: what an eager call without gradients takes
//   form_attention, form_attention_out  the same with a form: `form` is a number of fagen_torch_add_form, `numbers` and
//                  `tensors` are its args in their order
//   _plan          the number of a plan for calls like this one; _planned computes by it
// All but the first have no gradient; those with a form say so always. They refuse to run where PyTorch would record
// one, unless the caller says by `detached` that none is wanted. What is written into `out` counts as a change of it.
#include "objects.h"
#include "plans.h"

#include <array>
#include <cmath>
#include <mutex>

namespace fagen::torch {
namespace {

/// The tensors that every operator is given first. They are released at its end.
struct Inputs {
  const Tensor q, k, v;

  explicit Inputs(const Value *stack)
      : q(as<TensorHandle>(stack[0])), k(as<TensorHandle>(stack[1])), v(as<TensorHandle>(stack[2])) {}

  /// A call on them, without an output.
  Call call(const Options &options) const {
    const Call call = {q.view(), k.view(), v.view(), {}, nullptr, options};
    checkRank("q", call.q);
    checkRank("k", call.k);
    checkRank("v", call.v);
    return call;
  }
};

/// A call that writes into this tensor.
Call callInto(const Tensor &o, const Inputs &inputs, const Options &options) {
  Call call = inputs.call(options);
  call.o = o.view();
  checkRank("out", call.o);
  return call;
}

/// Before the caller's outputs are written: they are no tensor that is read, and autograd hears of the change.
void checkWrite(const Tensor &o, const Call &call) {
  refuseOverlap(call);
  noteChange(o.get());
}
void checkWrite(const Tensor &o, const Tensor &lse, const Call &call) {
  checkWrite(o, call);
  if (call.lse)
    noteChange(lse.get());
}

/// An operator's scale, which is freed.
std::optional<double> takeScale(Value value) {
  const std::optional<double> scale = takeOptional<double>(value);
  if (scale && !(std::isfinite(*scale) && *scale >= 0))
    fail("fagen.Error: scale is %g; it is finite and not negative", *scale);
  return scale;
}

/// Options as they follow one another in the schemas.
Options optionsOf(const Value *stack) {
  return {takeScale(stack[0]), as<bool>(stack[1]), as<bool>(stack[2]), as<int64_t>(stack[3])};
}

void refuseGradients(const char *name, bool detached) {
  if (!detached && shim().aoti_torch_grad_mode_is_enabled())
    fail("fagen.Error: torch.ops.fagen.%s has no gradient: call it under torch.no_grad(), or fagen.attention or "
         "torch.ops.fagen.attention, which have one",
         name);
}

/// Computes a call, and leaves new tensors O and LSE on the stack.
void answer(Value *stack, Call &call, bool wantsLse) {
  const int64_t none = 0;
  Tensor o = makeOutput(call);
  Tensor lse = wantsLse
                   ? makeLse(call)
                   : emptyTensor(&none, 1, shim().aoti_torch_dtype_float32(), call.q.deviceType, call.q.deviceIndex);
  attend(call);
  stack[0] = reinterpret_cast<Value>(o.release());
  stack[1] = reinterpret_cast<Value>(lse.release());
}

void attention(Value *stack, uint64_t, uint64_t) {
  const Inputs inputs(stack);
  Call call = inputs.call({takeScale(stack[3]), as<bool>(stack[4]), as<bool>(stack[5]), as<int64_t>(stack[7])});
  answer(stack, call, as<bool>(stack[6]));
}

void forwardLse(Value *stack, uint64_t, uint64_t) {
  const Inputs inputs(stack);
  refuseGradients("_forward_lse", as<bool>(stack[7]));
  Call call = inputs.call(optionsOf(stack + 3));
  answer(stack, call, true);
}

void forward(Value *stack, uint64_t, uint64_t) {
  const Inputs inputs(stack);
  Call call = inputs.call(optionsOf(stack + 3));
  refuseGradients("_forward", as<bool>(stack[7]));
  Tensor o = makeOutput(call);
  attend(call);
  stack[0] = reinterpret_cast<Value>(o.release());
}

/// Where LSE is written: null where it is empty. Fails unless it is packed.
float *lseOf(const Tensor &tensor, const Call &call) {
  const View lse = tensor.view();
  if (lse.rank == 1)
    return nullptr;
  const std::array<int64_t, 3> sizes = sizesOfLse(call);
  int64_t packed = 1;
  for (int i = 3; i-- > 0; packed *= sizes[i])
    if (lse.rank != 3 || lse.sizes[i] != sizes[i] || (sizes[i] > 1 && lse.strides[i] != packed))
      fail("fagen.Error: lse is not packed [batch, heads, rows]");
  if (lse.dtype != shim().aoti_torch_dtype_float32() || lse.deviceType != call.q.deviceType ||
      lse.deviceIndex != call.q.deviceIndex)
    fail("fagen.Error: lse is not of float32 on q's device");
  return static_cast<float *>(lse.data);
}

void attentionOut(Value *stack, uint64_t, uint64_t) {
  const Inputs inputs(stack);
  const Tensor o(as<TensorHandle>(stack[3])), lse(as<TensorHandle>(stack[4]));
  Call call = callInto(o, inputs, optionsOf(stack + 5));
  refuseGradients("attention_out", as<bool>(stack[9]));
  call.lse = lseOf(lse, call);
  checkWrite(o, lse, call);
  attend(call);
}

/// The args of a form: two lists of an operator. The tensors are released at its end.
struct FormInputs {
  std::vector<Tensor> tensors;
  std::vector<double> numbers;

  explicit FormInputs(const Value *stack) {
    for (Value item : itemsOf(as<ListHandle>(stack[0])))
      tensors.emplace_back(as<TensorHandle>(item));
    for (Value item : itemsOf(as<ListHandle>(stack[1])))
      numbers.push_back(as<double>(item));
  }

  FormCall call(int64_t number) const {
    std::vector<View> views;
    for (const Tensor &tensor : tensors)
      views.push_back(tensor.view());
    return formCallOf(number, numbers, std::move(views));
  }
};

void formAttention(Value *stack, uint64_t, uint64_t) {
  const Inputs inputs(stack);
  const FormInputs args(stack + 3);
  Call call = inputs.call({takeScale(stack[6]), false, as<bool>(stack[7]), as<int64_t>(stack[9])});
  refuseGradients("form_attention", as<bool>(stack[10]));
  call.form = args.call(as<int64_t>(stack[5]));
  answer(stack, call, as<bool>(stack[8]));
}

void formAttentionOut(Value *stack, uint64_t, uint64_t) {
  const Inputs inputs(stack);
  const FormInputs args(stack + 3);
  const Tensor o(as<TensorHandle>(stack[6])), lse(as<TensorHandle>(stack[7]));
  Call call = callInto(o, inputs, {takeScale(stack[8]), false, as<bool>(stack[9]), as<int64_t>(stack[10])});
  refuseGradients("form_attention_out", as<bool>(stack[11]));
  call.form = args.call(as<int64_t>(stack[5]));
  call.lse = lseOf(lse, call);
  checkWrite(o, lse, call);
  attend(call);
}

void plan(Value *stack, uint64_t, uint64_t) {
  const Inputs inputs(stack);
  const Tensor o(as<TensorHandle>(stack[3]));
  const Options options = optionsOf(stack + 4);
  const Call call = callInto(o, inputs, options);
  stack[0] = static_cast<Value>(addPlan(options, settle(call, keyOf(call))));
}

/// Inputs are as planned. Other strides of the output, or another alignment, are asked for as for any call.
void planned(Value *stack, uint64_t, uint64_t) {
  const Inputs inputs(stack);
  const Tensor o(as<TensorHandle>(stack[3]));
  const Plan plan = planOf(as<int64_t>(stack[4]));
  const Call call = callInto(o, inputs, plan.options);
  refuseGradients("_planned", as<bool>(stack[5]));
  if (keyOf(call).inputs != plan.settled->key.inputs)
    failOtherThanPlanned(plan);
  checkWrite(o, call);
  if (isAsPlanned(plan, call))
    run(*plan.settled, call);
  else
    attend(call);
}

struct Operator {
  const char *name, *schema;
  Kernel kernel;
};

constexpr Operator kOperators[] = {
    {"attention",
     "attention(Tensor q, Tensor k, Tensor v, float? scale, bool causal, bool bshd, bool lse, int kernels) "
     "-> (Tensor, Tensor)",
     attention},
    {"attention_out",
     "attention_out(Tensor q, Tensor k, Tensor v, Tensor(a!) out, Tensor(b!) lse, float? scale, bool causal, bool "
     "bshd, "
     "int kernels, bool detached=False) -> ()",
     attentionOut},
    {"_forward",
     "_forward(Tensor q, Tensor k, Tensor v, float? scale, bool causal, bool bshd, int kernels, bool detached=False) "
     "-> Tensor",
     forward},
    {"_forward_lse",
     "_forward_lse(Tensor q, Tensor k, Tensor v, float? scale, bool causal, bool bshd, int kernels, "
     "bool detached=False) -> (Tensor, Tensor)",
     forwardLse},
    {"form_attention",
     "form_attention(Tensor q, Tensor k, Tensor v, Tensor[] tensors, float[] numbers, int form, float? scale, "
     "bool bshd, bool lse, int kernels, bool detached=False) -> (Tensor, Tensor)",
     formAttention},
    {"form_attention_out",
     "form_attention_out(Tensor q, Tensor k, Tensor v, Tensor[] tensors, float[] numbers, int form, Tensor(a!) out, "
     "Tensor(b!) lse, float? scale, bool bshd, int kernels, bool detached=False) -> ()",
     formAttentionOut},
    {"_plan",
     "_plan(Tensor q, Tensor k, Tensor v, Tensor out, float? scale, bool causal, bool bshd, int kernels) -> int", plan},
    {"_planned", "_planned(Tensor q, Tensor k, Tensor v, Tensor(a!) out, int plan, bool detached=False) -> ()",
     planned},
};

/// The operators, for CUDA and CPU. The handles live as long as the process, as the operators do.
const char *defineOperators() {
  LibraryHandle library = nullptr;
  const Shim &s = shim();
  bool failed = s.aoti_torch_library_init_def("fagen", "fagen", 0, &library);
  for (const Operator &one : kOperators)
    failed = failed || s.aoti_torch_library_def(library, one.schema);
  if (failed)
    return "PyTorch refuses the operators' schemas";
  for (const char *key : {"CUDA", "CPU"}) {
    failed = failed || s.aoti_torch_library_init_impl("fagen", key, "fagen", 0, &library);
    for (const Operator &one : kOperators)
      failed = failed || s.aoti_torch_library_impl(library, one.name, one.kernel);
  }
  return failed ? "PyTorch refuses the operators' kernels" : nullptr;
}

} // namespace
} // namespace fagen::torch

using namespace fagen::torch;

extern "C" {
/// Defines the operators with the PyTorch whose libraries lie at these paths; `cuda` may be null. Once a process. Null,
/// or why not.
FAGEN_API const char *fagen_torch_register(const char *cpu, const char *cuda) {
  static std::once_flag once;
  static const char *error = nullptr;
  std::call_once(once, [&] {
    error = loadShim(cpu, cuda);
    if (!error)
      error = defineOperators();
  });
  return error;
}

/// The number that stands for these tables in calls of the operators; -1 when there are too many. Tables must live on.
FAGEN_API int fagen_torch_add_kernels(const fagen_table *const *tables, size_t tableCount) {
  return addKernels(Tables(tables, tables + tableCount));
}

/// The number that stands for a form and the names of its args in calls of the operators; -1 when there are too many.
FAGEN_API int64_t fagen_torch_add_form(const char *form, const char *const *names, const bool *areTensors,
                                       size_t count) {
  FormSignature signature = {form, {}};
  for (size_t i = 0; i < count; ++i)
    signature.args.push_back({names[i], areTensors[i]});
  return addSignature(std::move(signature));
}

/// Ends a plan.
FAGEN_API void fagen_torch_forget_plan(int64_t number) { forgetPlan(number); }

/// Whether calls, plans and traced operators from now on ask for programmatic dependent launches.
FAGEN_API void fagen_torch_overlap_launches(bool may) { overlapLaunches(may); }

/// Who computes for tensors on the CPU; null: nobody.
FAGEN_API void fagen_torch_set_emulator(Emulator computes) { setEmulator(computes); }

/// Calls `each` with every kernel that was launched, and how often.
FAGEN_API void fagen_torch_counts(void (*each)(const char *variant, const char *target, uint64_t launches)) {
  tellCounts(each);
}
}

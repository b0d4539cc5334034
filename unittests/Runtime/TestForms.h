// fagen: forms of tables, made by hand.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "TestTable.h"

#include <limits>

namespace fagen::test {

inline fagen_form_param scalarParam(const char *name, uint32_t element, uint32_t offset, double low, double high) {
  fagen_form_param param = {};
  param.name = name;
  param.element = element;
  param.offset = offset;
  param.low = low;
  param.high = high;
  return param;
}

/// Its extents are variables.
inline fagen_form_param tensorParam(const char *name, uint32_t element, uint32_t offset,
                                    std::initializer_list<int64_t> extents) {
  static std::deque<fagen_op> ops; // for ever: forms point at them
  fagen_form_param param = {};
  param.name = name;
  param.element = element;
  param.offset = offset;
  param.low = -std::numeric_limits<double>::infinity();
  param.high = std::numeric_limits<double>::infinity();
  for (int64_t variable : extents) {
    ops.push_back({FAGEN_OP_VARIABLE, 0, variable});
    param.extents[param.rank++] = {&ops.back(), 1, 0};
  }
  return param;
}

inline fagen_form makeForm(const char *name, const char *text, const std::vector<fagen_form_param> &params,
                           uint64_t hash = 1) {
  uint32_t bytes = 0;
  for (const fagen_form_param &param : params)
    if (param.offset != FAGEN_PARAM_BOUND)
      bytes = std::max(bytes, param.offset + (param.rank ? 8 + 8 * param.rank : 16));
  return {name, text, hash, params.data(), uint32_t(params.size()), sizeof(fagen_form_param), bytes, 0};
}

/// form gemma2 { param cap: f32 in [1, 55]; param window: i32 in [1, 4096]; ... }
inline const std::vector<fagen_form_param> kCapWindow = {scalarParam("cap", FAGEN_ELEMENT_F32, 0, 1, 55),
                                                         scalarParam("window", FAGEN_ELEMENT_I32, 16, 1, 4096)};
/// The same with window = 128 in the spec.
inline const std::vector<fagen_form_param> kCapBound = [] {
  std::vector<fagen_form_param> params = kCapWindow;
  params[1].offset = FAGEN_PARAM_BOUND;
  params[1].bound = 128;
  return params;
}();
/// form doc { param n: i32 in [0, 100]; param a: f32[heads, n]; param sees: bit[batch, seq_q, seq_kv];
///            param half: bf16[batch]; ... }
inline const std::vector<fagen_form_param> kTensors = {
    scalarParam("n", FAGEN_ELEMENT_I32, 0, 0, 100),
    tensorParam("a", FAGEN_ELEMENT_F32, 16, {FAGEN_VAR_HEADS, FAGEN_VAR_FORM_0}),
    tensorParam("sees", FAGEN_ELEMENT_BIT, 40, {FAGEN_VAR_BATCH, FAGEN_VAR_SEQ_Q, FAGEN_VAR_SEQ_KV}),
    tensorParam("half", FAGEN_ELEMENT_BF16, 72, {FAGEN_VAR_BATCH})};

inline fagen_arg number(const char *name, int64_t value) {
  fagen_arg arg = {};
  arg.name = name;
  arg.kind = FAGEN_ARG_I32;
  arg.i32 = value;
  return arg;
}
inline fagen_arg real(const char *name, double value) {
  fagen_arg arg = {};
  arg.name = name;
  arg.kind = FAGEN_ARG_F32;
  arg.f32 = value;
  return arg;
}
inline fagen_arg tensor(const char *name, uintptr_t data = 0, std::initializer_list<int64_t> strides = {}) {
  fagen_arg arg = {};
  arg.name = name;
  arg.kind = FAGEN_ARG_TENSOR;
  arg.data = reinterpret_cast<const void *>(data);
  std::copy(strides.begin(), strides.end(), arg.stride);
  return arg;
}

/// makeProblem with a form; the args must outlive it.
inline fagen_problem formProblem(const char *form, const std::vector<fagen_arg> &args) {
  fagen_problem problem = makeProblem();
  problem.form = form;
  problem.args = args.data();
  problem.arg_count = uint32_t(args.size());
  return problem;
}

inline fagen_row formRow(const char *variant, uint32_t form) {
  fagen_row row = makeRow(variant);
  row.mask = FAGEN_MASK_FORM_0 + form;
  return row;
}

} // namespace fagen::test

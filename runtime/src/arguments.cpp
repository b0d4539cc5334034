// fagen: the one argument of a row's kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "arguments.h"
#include "dispatch.h"
#include "state.h"

using namespace fagen;

device::MappedAttentionParams fagen::argumentsOf(const fagen_row &row, const device::AttentionParams &problem,
                                                 const fagen_tensors &tensors, void *workspace) {
  device::MappedAttentionParams params;
  static_cast<device::AttentionParams &>(params) = problem;
  params.q = tensors.q;
  params.k = tensors.k;
  params.v = tensors.v;
  params.o = tensors.o;
  params.lse = tensors.lse;
  params.workspace = workspace;
  params.by_tiles = device::make_divisor(int(tilesOfRows(row, uint32_t(problem.seq_q))));
  params.by_heads = device::make_divisor(problem.heads);
  return params;
}

fagen_status fagen::setForm(const fagen_choice &choice, const fagen_tensors &tensors, LaunchArgument &argument) {
  const fagen_form *form = formOf(*choice.table, choice.row->mask);
  if (!form)
    return FAGEN_OK;
  memcpy(argument.form, formBytes(choice), form->bytes);
  const bool hasArgs = tensors.struct_size >= sizeof(fagen_tensors); // else it is of before there were forms
  return fillForm(*form, hasArgs ? std::span(tensors.args, tensors.arg_count) : std::span<const fagen_arg>(),
                  argument.form);
}

size_t fagen::argumentBytes(const fagen_choice &choice) {
  const fagen_form *form = formOf(*choice.table, choice.row->mask);
  return sizeof(device::MappedAttentionParams) + (form ? form->bytes : 0);
}

// fagen: a program of a kernel set's table, and calls of it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "plan.h"

#include "lab/kernel_set/manifest.h"

namespace fagen::lab {

/// The kernel sets of a path, and the plan of one of their programs, whose runs go by the table's recipe.
struct TableProgram {
  std::vector<std::unique_ptr<KernelSet>> sets;
  ProgramPlan plan;

  /// The only program where `name` is empty. UserError with the programs that there are.
  static TableProgram load(const std::string &path, const std::string &name);
};

/// A call with all sizes, and dense tensors at these addresses, in the order of the plan's buffers. What the runtime
/// keeps in the workspace is left out.
struct TableCall {
  TableCall(const ProgramPlan &plan, const Sizes &sizes, const std::vector<const void *> &addresses);
  TableCall(const TableCall &) = delete;

  std::vector<fagen_named_tensor> tensors;
  std::vector<fagen_named_number> numbers;
  fagen_call call = fagen_call_init();
};

/// "gemm for sm_90a (mine): a f16[M, K], ...", a line for each program of the sets; empty without any.
std::string programTable(const std::vector<std::unique_ptr<KernelSet>> &sets);

} // namespace fagen::lab

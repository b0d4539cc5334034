// fagen: what dispatch knows of a kernel set, as text of C.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Emit/Plan.h"

#include "llvm/ADT/ArrayRef.h"

namespace fagen {

/// A postfix program as an expression of C over `p` (the problem), sms and splits.
std::string expressionOf(llvm::ArrayRef<SelectOp> program);

/// The parts of <name>.h. `order` are the plan's variants as attn_kernels lists them; `prefix` begins names: "ATTN_".
std::string singleKernels(const KernelPlan &plan, llvm::ArrayRef<unsigned> order, llvm::StringRef prefix);
std::string singleConditions(const KernelPlan &plan);
std::string singleWorkspace(const KernelPlan &plan, llvm::ArrayRef<unsigned> order);

/// Each kernel's entries and tensor maps, for the host's side of <name>.cu; `space` has the kernels' namespaces.
std::string singleLaunches(const KernelPlan &plan, llvm::ArrayRef<unsigned> order, llvm::StringRef space);

/// What launches that classify key tiles add to run.cu.in; empty where no variant has one.
struct SingleClassifier {
  std::string field, launch, clear;
};
SingleClassifier singleClassifier(const KernelPlan &plan);

} // namespace fagen

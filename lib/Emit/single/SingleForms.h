// fagen: what forms add to the two files of --emit=single.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Emit/Plan.h"

namespace fagen {

/// Texts for the places of select.h.in and run.cu.in; all are empty where no variant has a form, so that the files say
/// nothing of forms then. Names begin with attn_ and ATTN_, as in the texts.
struct SingleForms {
  std::string numbers;                  ///< enum of forms, and a struct of C for the args of each
  std::string field;                    ///< of attn_problem
  std::string args;                     ///< of attn_tensors
  std::string column;                   ///< of attn_kernel
  std::string mask = "(p->causal + 1)"; ///< what conditions call `mask`
  std::string matches;                  ///< what attn_computes asks besides
  std::string check;                    ///< of attn_read_problem
  std::string filling;                  ///< run.cu: the kernels' argument, and the function that fills it
  std::string argument = "  Params params;\n";
  std::string fill; ///< its call
};

SingleForms singleForms(const KernelPlan &plan);

} // namespace fagen

// fagen: attention with a form as a kernel computes it, in f32, by functions that a test may make wrong.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "FormOfText.h"
#include "lab/reference/criteria.h"

#include <functional>

namespace fagen {

/// A row's sums as a kernel has them; each function gets the element, with its score in f32.
struct ModelKernel {
  std::function<float(const lab::FormElement &)> score;
  std::function<bool(const lab::FormElement &)> mask;
  std::function<std::optional<float>(const lab::FormElement &)> sink;
  int sinks = 1;                    ///< how many parts of a row add it
  float oFactor = 1, lseFactor = 1; ///< of what is written
  /// What weights are relative to: the row's maximum, or this. Far below the maximum, sums may be infinite.
  std::optional<float> shift = std::nullopt;
  bool sinkJoinsLast = false;    ///< sums of keys follow it when they are done
  float leastWeight = 0x1p-126f; ///< exp2 gives 0 below
  bool multipliesFirst = false;  ///< exponents are score c - maximum c, the latter rounded

  /// What the form says; arguments outlive the kernel.
  static ModelKernel of(const lab::FormPtr &form, const lab::Case &c);
  /// The criteria that its results break, each once: "error lse"; empty: none.
  std::string failures(const lab::Case &c, lab::Arithmetic arithmetic = lab::Products::Scalar) const;
};

/// A case of a form by its block's text; the test fails, and the case has no form, where that has a mistake.
lab::Case caseOfForm(const std::string &form, const std::string &text, uint64_t seed = 1);

} // namespace fagen

// fagen: a form as a kernel set tells of it: its params and its programs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "problem.h"

#include <fagen/table.h>

#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

namespace fagen::lab {

/// The programs of a form, postfix texts as fagen/Form/Postfix.h has them; an absent one is empty.
struct FormTexts {
  std::vector<std::pair<std::string, std::string>> lets; ///< name and program, in order
  std::string score, mask, sink, vScale;
  std::set<std::string> reals; ///< params that are f32, or hold floating-point elements
};

struct FormParam {
  std::string name;
  uint32_t element = FAGEN_ELEMENT_I32;       ///< FAGEN_ELEMENT_...
  std::vector<std::vector<fagen_op>> extents; ///< a program each; none of a scalar
  bool isAscending = false;                   ///< along the last index
  double low = 0, high = 0;                   ///< infinite: any finite number
  std::optional<double> bound;                ///< the value that the spec gives a scalar

  bool isTensor() const { return !extents.empty(); }
  bool isReal() const { return element >= FAGEN_ELEMENT_F16; }
};

struct FormDefinition {
  std::string name;
  std::string text; ///< as cases have it, without blanks: "gemma2", "local(window=128)"
  std::vector<FormParam> params;
  FormTexts texts;
};
using FormPtr = std::shared_ptr<const FormDefinition>;

/// Of a tensor param; UserError where the program has no value.
int64_t extentOf(const std::vector<fagen_op> &program, const FormDefinition &form, const Shape &shape,
                 const std::map<std::string, double> &numbers);

/// Whether a tensor of the form has this scalar in an extent.
bool isExtent(const FormDefinition &form, const FormParam &param);
/// Whether an extent is one of these variables of the problem, FAGEN_VAR_..., and no more.
bool isOneOf(const std::vector<fagen_op> &extent, std::initializer_list<int64_t> variables);
/// Whether an extent says how many batches or heads there are.
bool isCount(const std::vector<fagen_op> &extent);

/// Dense, the last index fastest.
struct FormTensor {
  std::vector<int64_t> extents;
  std::vector<double> values;
};

struct FormArguments {
  std::map<std::string, double> numbers;
  std::map<std::string, FormTensor> tensors;
};

} // namespace fagen::lab

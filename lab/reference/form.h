// fagen: forms in f64: what a score becomes, whether a query sees a key, what joins a row's sum.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An interpreter of postfix programs, as fagen/Form/Postfix.h has them. It shares nothing with what kernels are made
// by.
#pragma once

#include "lab/cases/problem.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fagen::lab {

/// The programs of a form; an absent one is empty.
struct FormTexts {
  std::vector<std::pair<std::string, std::string>> lets; ///< name and program, in order
  std::string score, mask, sink;
};

/// Dense, the last index fastest.
struct FormTensor {
  std::vector<int64_t> extents;
  std::vector<double> values;
};

struct FormArguments {
  std::map<std::string, double> numbers;
  std::map<std::string, FormTensor> tensors;
};

struct FormElement {
  double score = 0; ///< scale * q . k
  int64_t batch = 0, head = 0, query = 0, key = 0;
};

class FormProgram {
public:
  /// Throws a UserError where a text is no program.
  explicit FormProgram(const FormTexts &texts);

  double score(const Shape &shape, const FormArguments &arguments, const FormElement &element) const;
  bool mask(const Shape &shape, const FormArguments &arguments, const FormElement &element) const;
  std::optional<double> sink(const Shape &shape, const FormArguments &arguments, const FormElement &element) const;

private:
  struct Word {
    enum Kind { Number, Place, Param, Let, Read, Operator } kind;
    double number = 0;
    std::string name;
    size_t operands = 0; ///< that it takes from the stack
  };
  using Program = std::vector<Word>;
  struct Run;

  static Word parseWord(const std::string &text);
  static Program parse(const std::string &text);

  std::vector<std::pair<std::string, Program>> lets;
  Program scoreProgram, maskProgram, sinkProgram;
};

} // namespace fagen::lab

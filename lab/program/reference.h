// fagen: what a program should compute, as sums of products: "c[m, n] = relu(a[m, k] * b[n, k])".
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "function.h"
#include "index_expr.h"
#include "plan.h"

namespace fagen::lab {

/// A tensor of a statement, with a place for each dimension: "a[m, k]", "x[begin[b] + q, h / 4]".
struct IndexedTensor {
  std::string buffer;
  std::vector<IndexExpr> places;
};

/// `result` is the sum, over the indices that it lacks, of the product of `factors`, or a function of that sum. Places
/// of the result are indices.
struct Statement {
  IndexedTensor result;
  const Function *function = nullptr;
  std::vector<IndexedTensor> factors;
};

/// What a buffer of integers holds when a program begins: "begin[b] = 70 * b".
struct Fill {
  IndexedTensor buffer; ///< its places are indices
  IndexExpr value;
};

/// UserError with the place of a mistake, and for a buffer that is not u32, or that launches write.
Fill parseFill(const std::string &text, const ProgramPlan &plan);

/// Statements, ';' between them. Operands are what memory holds at the end, so each statement is held to account alone,
/// also where one launch reads what another wrote. UserError with the place of a mistake, for a buffer that the plan
/// lacks, and for an index of the result that no factor has.
std::vector<Statement> parseReference(const std::string &text, const ProgramPlan &plan);

/// A buffer's values in f64, with its shape.
struct TensorValues {
  std::vector<int64_t> shape;
  std::vector<double> values;
};

/// One element as it should be: the exact value, and the sum of the terms' magnitudes, which errors grow with.
struct ExpectedElement {
  double value = 0, magnitude = 0;
  int64_t terms = 0;
  double slope = 1;    ///< by which an error of the sum grows or shrinks
  double ownError = 0; ///< of the function that is applied to the sum
};

/// The value of an expression, with the indices' values by name and the tensors that it reads. UserError for an element
/// that no tensor has.
int64_t evaluate(const IndexExpr &expr, const std::vector<std::string> &names, const std::vector<int64_t> &values,
                 const std::map<std::string, TensorValues> &tensors);

/// Indices' extents, checked to agree between tensors; UserError where they do not. Lives no longer than what it is
/// made of.
class Evaluator {
public:
  Evaluator(const Statement &statement, const std::map<std::string, TensorValues> &tensors);
  /// Of the result's element with this offset in its dense tensor.
  ExpectedElement at(int64_t offset) const;
  int64_t elements() const; ///< of the result

private:
  struct Place {
    const IndexExpr *expr;
    int64_t extent, stride;
  };
  struct Factor {
    const std::string *buffer;
    const TensorValues *tensor;
    std::vector<int64_t> strides; ///< by index, of all, where a place is one
    std::vector<Place> places;    ///< the others
  };
  ExpectedElement sumAt(std::vector<int64_t> index) const;
  int64_t placeOf(const Factor &factor, const std::vector<int64_t> &index) const;

  const std::map<std::string, TensorValues> &tensors;
  const Function *function;
  std::vector<std::string> names; ///< of all indices
  std::vector<int64_t> extents;   ///< of all indices: those of the result first
  size_t kept = 0;                ///< how many are the result's
  std::vector<Factor> factors;
};

/// How far a result of `element` may be from the truth: half a unit of the last place of what is stored, what the
/// function of the sum is off by, and f32 sums of so many terms in any order (Higham, Accuracy and Stability of
/// Numerical Algorithms, 3.1), each term cut off below 2^-23 of its sum, as tensor cores do.
double allowedError(const ExpectedElement &expected, Element element);

} // namespace fagen::lab

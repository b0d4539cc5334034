// fagen: what a program should compute: "c[m, n] = relu(a[m, k] * b[n, k])".
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "index_expr.h"
#include "plan.h"
#include "value_expr.h"

namespace fagen::lab {

/// Places of the result are indices and numbers. What the value has of other indices is summed over them.
struct Statement {
  IndexedTensor result;
  ValueExpr value;
};

/// What a buffer of integers holds when a program begins: "begin[b] = 70 * b".
struct Fill {
  IndexedTensor buffer; ///< its places are indices
  IndexExpr value;
};

/// UserError with the place of a mistake, and for a buffer that is not u32, or that launches write.
Fill parseFill(const std::string &text, const ProgramPlan &plan);

/// Statements, ';' between them. Elements are what memory holds at the end, so each statement is held to account alone,
/// also where one launch reads what another wrote. UserError with the place of a mistake, for a buffer that the plan
/// lacks, and for an index of the result that the value does not have.
std::vector<Statement> parseReference(const std::string &text, const ProgramPlan &plan);

/// A buffer's values in f64, with its shape.
struct TensorValues {
  Element element = Element::F32;
  std::vector<int64_t> shape;
  std::vector<double> values;
};

/// One element as it should be: the exact value, and how far one that is computed in f32 may be from it.
struct ExpectedElement {
  double value = 0, error = 0;
};

/// The value of an expression, with the indices' values by name and the tensors that it reads. UserError for an element
/// that no tensor has.
int64_t evaluate(const IndexExpr &expr, const std::vector<std::string> &names, const std::vector<int64_t> &values,
                 const std::map<std::string, TensorValues> &tensors);

/// Indices' extents, checked to agree between tensors; UserError where they do not. Lives no longer than what it is
/// made of.
///
/// Errors: of a sum of so many terms in f32 in any order (Higham, Accuracy and Stability of Numerical Algorithms, 3.1),
/// each term cut off below 2^-23 of its sum, as tensor cores do; of an operation half a unit of the last place of what
/// goes into it and comes of it; of a function what its instruction has; of a sum of products of two elements of e4m3
/// what wgmma cuts off where it takes 32 of them at a time, in the order of the index. Errors of what is computed
/// before go on.
class Evaluator {
public:
  Evaluator(const Statement &statement, const std::map<std::string, TensorValues> &tensors, const Sizes &sizes);
  /// Of the n-th element that the statement speaks of.
  ExpectedElement at(int64_t n) const;
  /// Where it stands in the dense tensor.
  int64_t placeOf(int64_t n) const;
  int64_t elements() const;

private:
  struct Place {
    const IndexExpr *expr;
    int64_t extent, stride;
  };
  /// Of a ValueExpr.
  struct Node {
    const ValueExpr *expr = nullptr;
    std::vector<Node> operands = {};
    bool isWhole = false;   ///< an integer, exact
    bool isTerm = false;    ///< a product of elements right under a sum, which has its error
    bool isOfBytes = false; ///< such a term, of elements of one byte
    size_t index = 0;       ///< of Index, Sum and Max: which
    int64_t extent = 0;     ///< of Sum and Max without a bound
    const TensorValues *tensor = nullptr;
    std::vector<std::pair<size_t, int64_t>> strides = {}; ///< of places that are an index
    std::vector<Place> places = {};                       ///< the others
  };

  void addExtents(const IndexedTensor &tensor);
  void addExtents(const ValueExpr &expr);
  void addNames(const ValueExpr &expr, const Sizes &sizes);
  Node nodeOf(const ValueExpr &expr, bool isUnderSum) const;
  std::vector<int64_t> indexOf(int64_t n) const;
  ExpectedElement valueOf(const Node &node, std::vector<int64_t> &index) const;
  ExpectedElement elementOf(const Node &node, const std::vector<int64_t> &index) const;
  ExpectedElement summedOfBytes(const Node &node, std::vector<int64_t> &index, int64_t end) const;
  ExpectedElement reduced(const Node &node, std::vector<int64_t> &index) const;
  ExpectedElement operated(const Node &node, std::vector<int64_t> &index) const;

  const Statement &statement;
  const std::map<std::string, TensorValues> &tensors;
  std::vector<std::string> names;               ///< of all indices, and of sizes
  std::vector<int64_t> extents;                 ///< kBounded of sizes, and of indices with bounds of their own
  std::vector<int64_t> values;                  ///< of sizes; 0 of indices
  std::vector<std::pair<size_t, int64_t>> kept; ///< indices of the result, with their strides
  int64_t first = 0;                            ///< where the element with all these 0 stands
  Node root;
};

/// How far a result of `element` may be from the truth: the computed value's error, and half a unit of the last place
/// of what is stored.
double allowedError(const ExpectedElement &expected, Element element);

} // namespace fagen::lab

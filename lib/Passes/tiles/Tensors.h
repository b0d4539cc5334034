// fagen: attention's tensors in global memory, and what copies and stores see of them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"
#include "fagen/Spec/Spec.h"

namespace fagen {

/// A tensor among the parameters, and its rows that a CTA works on: a view.
struct Global {
  ir::Buffer *tensor = nullptr, *view = nullptr;
};

ir::ElementType elementOfQueries(const Problem &problem); ///< of Q and O
ir::ElementType elementOfKeys(const Problem &problem);    ///< of K and V

/// Q, K, V, O: [batch, heads, length, columns], and LSE: [batch, heads, length], by their published names.
class Tensors {
public:
  Tensors(ir::Kernel &kernel, const Variant &variant);

  void addInputs();
  void addOutput();
  /// After all names that it may not take.
  void addViews();
  /// How many rows of queries a head has; of packed heads, all heads that share a K/V head.
  ir::Expr rows() const;

  Global q, k, v, o, lse;

private:
  ir::Buffer *add(const llvm::Twine &name, ir::ElementType type);
  ir::Buffer *addTensor(llvm::StringRef param, ir::ElementType type, bool isOfQueries, const ir::Expr &columns);
  void addView(Global &of, const ir::Expr &rows, const ir::Expr &head, const ir::Expr &row);
  void addViewOfQueries(Global &of);
  void addViewOfKeys(Global &of);

  ir::Kernel &kernel;
  const Schedule &schedule;
  const bool hasSums;                    ///< LSE
  const ir::ElementType element, ofKeys; ///< of Q and O; of K and V
  std::string row, column;               ///< of views
};

} // namespace fagen

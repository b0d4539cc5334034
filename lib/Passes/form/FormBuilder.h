// fagen: what a form adds to the algorithm over tiles: params, masks, scores, the factor of exp2, and sinks.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "RowReads.h"
#include "fagen/Form/Lower.h"
#include "fagen/IR/Patterns.h"
#include "fagen/IR/RunValues.h"
#include "fagen/Spec/Spec.h"

namespace fagen {

class FormBuilder {
public:
  FormBuilder(ir::Kernel &kernel, const Variant &variant);

  /// Scalars and tensors, less bound ones. `scores` is where products leave theirs, `rows` a fragment of rows.
  void declare(const ir::Buffer &scores, const ir::Buffer &rows);
  ir::Expr mask(const ir::Expr &keys); ///< which of so many keys a row sees; what a tile reads once becomes a let
  /// What scores become where they stand, in natural units; null where they stay products.
  ir::Expr score();
  const RowReads &rowReads() const { return reads; } ///< of the score
  /// What takes held scores to powers of two.
  ir::Expr factor();
  const ir::ExponentOrder order; ///< the difference first where held scores may be large
  /// What rows end with m in, unless the scale says that: exponents of two, of large scores nats (rounded once less).
  std::optional<ir::RowUnit> rowUnit() const;
  struct Rows { // of a fragment, after their last key
    ir::Buffer *o, *m, *mNew, *l;
  };
  void end(ir::Builder &builder, const Rows &rows);
  Location lineOf(Location form::Form::*line, const Location &kernel) const; ///< of its score or mask

private:
  void addTensor(llvm::StringRef name, const form::Param &param);
  ir::Expr paramOf(unsigned index) const;
  ir::Expr placeOf(form::Place place) const;
  ir::Expr headOf(const ir::Expr &row) const;
  ir::Expr queryOf(const ir::Expr &row) const;
  ir::Expr lower(const form::Node &node, bool keysExist = true) const;
  ir::Expr hoistReads(const ir::Expr &expr);
  ir::Expr heldScore();
  ir::Expr hoistReals(const ir::Expr &expr, llvm::StringRef name);
  ir::Expr letOf(const ir::Expr &value, llvm::StringRef name);
  ir::Expr timesUnits(ir::Expr factor);
  void joinSink(ir::Builder &builder, const Rows &rows) const;
  ir::Expr ofFirstKeys(ir::Expr value, ir::Expr otherwise) const;

  ir::Kernel &kernel;
  const Problem &problem;
  const Schedule &schedule;
  const form::Form &form;
  const form::Scaled scaled;
  const ir::Buffer *scores = nullptr;
  RowReads reads;
  ir::Expr held;                   ///< scores in natural units
  std::vector<std::string> params; ///< what the form's scalars and tensors are called
};

} // namespace fagen

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

  /// Scalars and tensors, less those that are bound. `scores` is where products leave theirs, `rows` a fragment of
  /// rows.
  void declare(const ir::Buffer &scores, const ir::Buffer &rows);
  /// Which keys a row sees, beside those that exist; null: all. What a tile reads once becomes a let.
  ir::Expr mask();
  /// What scores become where they stand, in natural units; null where they stay products.
  ir::Expr score();
  const RowReads &rowReads() const { return reads; } ///< of the score
  /// What takes held scores to powers of two.
  ir::Expr factor();
  /// How c (s - m) is computed: the difference first where held scores may be large.
  ir::ExponentOrder exponentOrder() const;
  /// What rows end with m in, where the scale does not say what scores are in, or a sink has joined: an exponent of two;
  /// of large scores nats, since products of these with log2(e) round, and may overflow.
  std::optional<ir::RowUnit> rowUnit() const;
  struct Rows { // of a fragment, behind their last key
    ir::Buffer *o, *m, *mNew, *l;
  };
  void end(ir::Builder &builder, const Rows &rows);

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
  ir::Expr inRowUnit(const ir::Expr &m);
  ir::Expr powerOf(const ir::Expr &exponent) const;
  void joinSink(ir::Builder &builder, const Rows &rows) const;
  ir::Expr ofFirstKeys(ir::Expr value, ir::Expr otherwise) const;

  ir::Kernel &kernel;
  const Problem &problem;
  const Schedule &schedule;
  const form::Form &form;
  const form::Scaled scaled;
  const bool isLarge; ///< held scores may be
  const ir::Buffer *scores = nullptr;
  RowReads reads;
  ir::Expr held;                   ///< scores in natural units
  std::vector<std::string> params; ///< what the form's scalars and tensors are called
};

} // namespace fagen

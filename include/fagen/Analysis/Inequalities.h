// fagen: proofs that an integer of a kernel is at most another, whatever sizes, indices and tensors hold.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An expression becomes a sum of products of atoms: names, elements of tensors, and min, max, quotients and choices.
// What is known of an atom is a list of facts: sums that are 0 or more, of which it is the newest atom. A goal, a sum
// that is to be 0 or more, loses its newest atom by a fact, of which any may serve, or by looking at both sides of a
// min, a max or a choice; what is left is a number. It is a search of bounded length, and no decision: what it does not
// prove may be true.
#pragma once

#include "fagen/Analysis/Sum.h"
#include "fagen/IR/IR.h"

#include "llvm/ADT/StringMap.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace fagen {

class Inequalities {
public:
  /// Knows the sizes, numbers, constants, tensors, grid indices and lets of the kernel, or attention's values. What an
  /// index tensor holds is what the caller promises, else any value of its type.
  explicit Inequalities(const ir::Kernel &kernel);

  /// A name of integers of which nothing else is known, until the scope ends; of `isNotNegative` that it is 0 or more.
  void declare(llvm::StringRef name, bool isNotNegative);
  /// The condition holds until the scope ends. Of parts that are no comparisons nothing is learnt.
  void assume(const ir::Expr &condition);
  void assumeAtMost(const ir::Expr &a, const ir::Expr &b);

  bool isAtMost(const ir::Expr &a, const ir::Expr &b);
  bool isNotNegative(const ir::Expr &expr) { return isAtMost(ir::constant(0), expr); }

  /// What is declared and assumed while it lives is forgotten with it.
  class Scope;

private:
  enum class Shape : uint8_t { Name, Smaller, Larger, Choice, Quotient };
  struct Atom {
    bool isNotNegative = false;
    std::vector<Sum> facts = {}; ///< each 0 or more
    Shape shape = Shape::Name;
    Sum a = {}, b = {};      ///< operands; of a quotient b is the divisor
    ir::Expr condition = {}; ///< of a choice
  };
  struct Known {
    llvm::StringMap<Sum> names;
    std::map<std::string, unsigned> made; ///< atoms of expressions, by what they are made of
    std::vector<Atom> atoms;
    bool isImpossible = false; ///< what is assumed contradicts itself: everything holds
  };

  void declareRunValues();
  Sum sumOf(const ir::Expr &expr);
  Sum sumOfElement(const ir::Expr &read);
  Sum sumOfQuotient(const ir::Expr &expr);
  Sum sumOfExtreme(const ir::Expr &expr);
  Sum sumOfChoice(const ir::Expr &expr);
  Sum sumOfAny(const ir::Expr &expr);
  /// The atom of that text; a new one by `make`.
  Sum atomOf(const std::string &key, llvm::function_ref<Atom()> make);
  Sum add(Atom atom);
  void bound(const Sum &sum, int64_t low, int64_t high);
  void learn(const Sum &fact); ///< that it is 0 or more

  bool proves(const Sum &goal);
  /// That the goal is -slack or more.
  bool search(const Sum &goal, int64_t slack);
  bool searchWithoutNewest(const Sum &goal, int64_t slack);
  bool searchByFacts(const Sum &goal, int64_t slack, const Monomial &monomial, int64_t times);
  bool searchBySides(const Sum &goal, int64_t slack, unsigned atom);
  bool searchTimesDivisor(const Sum &goal, int64_t slack, const Monomial &monomial);
  bool areNotNegative(const Monomial &monomial) const;

  const ir::Kernel &kernel;
  Known known;
  unsigned steps = 0, depth = 0, mostDepth = 0; ///< of the search
  std::set<std::string> tried;                  ///< goals of this search that are on the way, or failed
};

class Inequalities::Scope {
public:
  explicit Scope(Inequalities &of) : of(of), outer(of.known) {}
  ~Scope() { of.known = std::move(outer); }
  Scope(const Scope &) = delete;
  Scope &operator=(const Scope &) = delete;

private:
  Inequalities &of;
  Known outer;
};

} // namespace fagen

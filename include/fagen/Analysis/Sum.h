// fagen: sums of monomials of whole numbers that have no value yet.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/ADT/SmallVector.h"

#include <algorithm>
#include <cstdint>
#include <map>

namespace fagen {

/// Numbers of the factors, the newest first; one that is there twice is squared.
using Monomial = llvm::SmallVector<unsigned, 3>;

/// constant + the sum of times * monomial. The monomial with the newest factors is the first: an order that monomials with
/// a factor more keep.
struct Sum {
  struct NewestFirst {
    bool operator()(const Monomial &a, const Monomial &b) const {
      return std::lexicographical_compare(b.begin(), b.end(), a.begin(), a.end());
    }
  };
  std::map<Monomial, int64_t, NewestFirst> terms;
  int64_t constant = 0;
  bool isLost = false; ///< a number left 64 bits: nothing is known of it

  Sum() = default;
  Sum(int64_t constant) : constant(constant) {}
  static Sum ofFactor(unsigned factor);

  void add(const Monomial &monomial, int64_t times);
  /// times * monomial * other
  void add(const Sum &other, int64_t times, const Monomial &monomial = {});
  /// With the sum in the factor's place.
  Sum withFactor(unsigned factor, const Sum &value) const;
  bool operator==(const Sum &other) const { return constant == other.constant && terms == other.terms; }
};

Monomial operator*(const Monomial &a, const Monomial &b);
/// What is left of `a` without the factors of `b`; false where it lacks one.
bool divide(const Monomial &a, const Monomial &b, Monomial &rest);

Sum operator+(const Sum &a, const Sum &b);
Sum operator-(const Sum &a, const Sum &b);
Sum operator*(const Sum &a, const Sum &b);

} // namespace fagen

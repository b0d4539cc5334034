// fagen: sums of products of whole numbers that have no value yet.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/ADT/SmallVector.h"

#include <algorithm>
#include <cstdint>
#include <map>

namespace fagen {

/// Numbers of the factors, the newest first; one that is there twice is squared.
using Product = llvm::SmallVector<unsigned, 3>;

/// constant + the sum of times * product. The product with the newest factors is the first: an order that products with
/// a factor more keep.
struct Sum {
  struct NewestFirst {
    bool operator()(const Product &a, const Product &b) const {
      return std::lexicographical_compare(b.begin(), b.end(), a.begin(), a.end());
    }
  };
  std::map<Product, int64_t, NewestFirst> terms;
  int64_t constant = 0;
  bool isLost = false; ///< a number left 64 bits: nothing is known of it

  Sum() = default;
  Sum(int64_t constant) : constant(constant) {}
  static Sum ofFactor(unsigned factor);

  void add(const Product &product, int64_t times);
  /// times * product * other
  void add(const Sum &other, int64_t times, const Product &product = {});
  /// With the sum in the factor's place.
  Sum withFactor(unsigned factor, const Sum &value) const;
  bool operator==(const Sum &other) const { return constant == other.constant && terms == other.terms; }
};

Product operator*(const Product &a, const Product &b);
/// What is left of `a` without the factors of `b`; false where it lacks one.
bool divide(const Product &a, const Product &b, Product &rest);

Sum operator+(const Sum &a, const Sum &b);
Sum operator-(const Sum &a, const Sum &b);
Sum operator*(const Sum &a, const Sum &b);

} // namespace fagen

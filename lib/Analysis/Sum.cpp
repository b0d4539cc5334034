// fagen: sums of products of whole numbers that have no value yet.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Analysis/Sum.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <functional>

using namespace fagen;

Monomial fagen::operator*(const Monomial &a, const Monomial &b) {
  Monomial monomial(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), monomial.begin(), std::greater<>());
  return monomial;
}

bool fagen::divide(const Monomial &a, const Monomial &b, Monomial &rest) {
  rest.clear();
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(rest), std::greater<>());
  return rest.size() + b.size() == a.size();
}

Sum Sum::ofFactor(unsigned factor) {
  Sum sum;
  sum.add(Monomial{factor}, 1);
  return sum;
}

void Sum::add(const Monomial &monomial, int64_t times) {
  int64_t &number = monomial.empty() ? constant : terms[monomial];
  isLost |= bool(llvm::AddOverflow(number, times, number));
  if (!monomial.empty() && number == 0)
    terms.erase(monomial);
}

void Sum::add(const Sum &other, int64_t times, const Monomial &monomial) {
  isLost |= other.isLost;
  auto addTerm = [&](const Monomial &of, int64_t number) {
    int64_t scaled = 0;
    isLost |= bool(llvm::MulOverflow(number, times, scaled));
    add(of * monomial, scaled);
  };
  for (const auto &[of, number] : other.terms)
    addTerm(of, number);
  addTerm({}, other.constant);
}

Sum Sum::withFactor(unsigned factor, const Sum &value) const {
  Sum result(constant);
  result.isLost = isLost;
  for (const auto &[monomial, times] : terms) {
    Monomial rest = monomial;
    Sum term(times);
    while (llvm::is_contained(rest, factor)) {
      rest.erase(llvm::find(rest, factor));
      term = term * value;
    }
    result.add(term, 1, rest);
  }
  return result;
}

Sum fagen::operator+(const Sum &a, const Sum &b) {
  Sum sum = a;
  sum.add(b, 1);
  return sum;
}
Sum fagen::operator-(const Sum &a, const Sum &b) {
  Sum sum = a;
  sum.add(b, -1);
  return sum;
}
Sum fagen::operator*(const Sum &a, const Sum &b) {
  Sum sum;
  for (const auto &[monomial, times] : a.terms)
    sum.add(b, times, monomial);
  sum.add(b, a.constant);
  sum.isLost |= a.isLost;
  return sum;
}

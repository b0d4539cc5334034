// fagen: a form as a kernel takes it: some of its scalars may have a fixed value.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Form/Form.h"

namespace fagen::form {

/// The value of a scalar param, by its type.
struct Bound {
  unsigned param = 0;
  int64_t integer = 0;
  double real = 0;
};

/// What an axis says: gemma2, or local(window = 128).
struct Use {
  std::shared_ptr<const Form> form;
  std::vector<Bound> bound; ///< in the order of the params
  const Bound *boundOf(unsigned param) const;
};

/// As a spec has it: "local(window = 128)".
std::string toText(const Use &use);
/// As names of variants have it: "local_window128"; "1p5" for 1.5, "m2" for -2.
std::string toNamePart(const Use &use);

/// Where a param of the form lies in the second argument of its kernels (fagen/device/form.h): scalars come
/// first and take 16 bytes, a tensor takes 8, and 8 for each extent. Bound params have no place.
struct Field {
  unsigned param = 0;
  unsigned offset = 0; ///< bytes
};
struct Layout {
  std::vector<Field> fields;
  unsigned bytes = 0;
};
Layout layoutOf(const Use &use);
/// Which param the n-th scalar of a kernel is: bound ones are none.
unsigned paramOfScalar(const Use &use, unsigned n);
/// What fits into a choice of the runtime (fagen_choice.state).
inline constexpr unsigned kMostArgumentBytes = 192;

/// What the score may be, by the ranges of params and the values of bound ones.
RealRange scoreRange(const Use &use);
/// Whether the score may be so large that the rounding of its product with log2(e) shows in a term: ranges do not prove
/// it below kSmallScore where s is below kPlainScore, as kernels without a form take it, and each f32 of a query or a
/// key below kPlainPlace. What grows with places is rounded by as much when it is made, so larger places change
/// nothing.
inline constexpr double kPlainScore = 1024, kPlainPlace = 4096, kSmallScore = 16384;
bool mayBeLarge(const Use &use);

/// The forms that every file has: `none` and `causal`.
const Form &noneForm();
const Form &causalForm();

} // namespace fagen::form

// fagen: which values nodes of forms may have, and whether they are exact.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Form/Form.h"

namespace fagen::form {

/// What 32 bits hold.
inline constexpr ir::Interval kI32 = {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};

/// Of an operator, or of a Select, that gives integers, by the ranges of its operands. It may leave 32 bits. Nothing
/// where a divisor may be less than 1 or a shift not be in 0 to 31.
std::optional<ir::Interval> integerRange(const Node &node);

/// Whether an f32 may be off by rounding, by its operator and its operands: an integer that kernels count along the
/// keys, or of more than 24 bits, and what is calculated.
bool isRounded(const Node &node);

/// Of one that gives f32. What overflows although all operands are finite is not looked at.
RealRange realRange(const Node &node);

} // namespace fagen::form

// fagen: the integer functions that loop bounds are written with.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace fagen::device {

constexpr int min(int a, int b) { return a < b ? a : b; }
constexpr int max(int a, int b) { return a > b ? a : b; }

/// a / b rounded down; a is not negative, b is positive.
constexpr int floor_div(int a, int b) { return a / b; }

/// a / b rounded up; a is not negative, b is positive.
constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

} // namespace fagen::device

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

/// The same of any a.
constexpr int signed_floor_div(int a, int b) { return a >= 0 ? a / b : ~(~a / b); }
constexpr int signed_ceil_div(int a, int b) { return a > 0 ? (a - 1) / b + 1 : a / b; }

/// What signed_floor_div leaves, from 0 to b - 1.
constexpr int floor_mod(int a, int b) { return a - signed_floor_div(a, b) * b; }

// && and || of conditions that read memory. All are asked: what a lane reads does not wait for what it knows already.
template <class... Conditions> constexpr bool all_of(Conditions... conditions) {
  return (static_cast<int>(static_cast<bool>(conditions)) & ...) != 0;
}
template <class... Conditions> constexpr bool any_of(Conditions... conditions) {
  return (static_cast<int>(static_cast<bool>(conditions)) | ...) != 0;
}

} // namespace fagen::device

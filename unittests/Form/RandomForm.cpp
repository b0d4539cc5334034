// fagen: random values of forms: texts next to trees of C++ functions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RandomForm.h"

#include <cmath>

namespace fagen {

using Place = const RandomPlace &;

/// Precedence of C, the loosest first.
enum Precedence : unsigned {
  kSelect,
  kOr,
  kAnd,
  kBitOr,
  kBitXor,
  kBitAnd,
  kEqual,
  kLess,
  kShift,
  kSum,
  kProduct,
  kUnary
};
constexpr unsigned kPrimary = kUnary + 1;
constexpr int64_t kMost = int64_t(1) << 30;

std::string RandomForms::params() {
  return "param n: i32 in [1, 50]; param t: f32 in [0.5, 2]; param a: f32[heads]; param c: i32[seq_q, 3] in [-20, 20]; "
         "param d: bit[batch, seq_kv]; ";
}

lab::FormArguments RandomForms::arguments() {
  lab::FormArguments arguments;
  arguments.numbers = {{"n", double(draw(1, 50))}, {"t", double(draw(4, 16)) / 8}};
  auto fill = [&](const char *name, std::vector<int64_t> extents, int64_t count, int64_t low, int64_t high) {
    lab::FormTensor &tensor = arguments.tensors[name] = {std::move(extents), {}};
    for (int64_t i = 0; i != count; ++i)
      tensor.values.push_back(double(draw(low, high)));
  };
  fill("a", {4}, 4, -3, 3);
  fill("c", {5, 3}, 15, -20, 20);
  fill("d", {2, 9}, 18, 0, 1);
  return arguments;
}

/// In parentheses where it binds looser than `least`, and now and then where it need not be.
std::string RandomForms::operand(const RandomValue &value, unsigned least) {
  return value.precedence < least || draw(0, 7) == 0 ? "(" + value.text + ")" : value.text;
}

static double readOf(Place p, const char *name, std::initializer_list<double> indices) {
  const lab::FormTensor &tensor = p.arguments.tensors.at(name);
  int64_t at = 0, i = 0;
  for (double index : indices) {
    const int64_t extent = tensor.extents[i++];
    at = at * extent + (index < 0 ? 0 : index >= double(extent) ? extent - 1 : int64_t(index));
  }
  return tensor.values[at];
}

RandomValue RandomForms::integerLeaf() {
  const int64_t number = draw(0, 100);
  switch (draw(0, 6)) {
  case 0:
    return {"clamp(q, 0, 63)", kPrimary, 63, [](Place p) { return double(p.element.query); }};
  case 1:
    return {"clamp(k, 0, 63)", kPrimary, 63, [](Place p) { return double(p.element.key); }};
  case 2:
    return {"clamp(k - p, -63, 63)", kPrimary, 63,
            [](Place p) { return double(p.element.key - p.element.query - p.shape.seqKv + p.shape.seqQ); }};
  case 3:
    return {"n", kPrimary, 50, [](Place p) { return p.arguments.numbers.at("n"); }};
  case 4:
    return {"min(h, 9)", kPrimary, 9, [](Place p) { return double(p.element.head); }};
  case 5:
    return {"-" + std::to_string(number), kUnary, number, [=](Place) { return double(-number); }};
  default:
    return {std::to_string(number), kPrimary, number, [=](Place) { return double(number); }};
  }
}

RandomValue RandomForms::bits(unsigned depth) {
  RandomValue a = integer(depth), b = integer(depth);
  const auto x = a.evaluate, y = b.evaluate;
  const int64_t most = 2 * std::max({a.most, b.most, int64_t(1)});
  switch (draw(0, 3)) {
  case 0:
    return {operand(a, kBitAnd) + " & " + operand(b, kBitAnd + 1), kBitAnd, most,
            [=](Place p) { return double(int64_t(x(p)) & int64_t(y(p))); }};
  case 1:
    return {operand(a, kBitOr) + " | " + operand(b, kBitOr + 1), kBitOr, most,
            [=](Place p) { return double(int64_t(x(p)) | int64_t(y(p))); }};
  case 2:
    return {operand(a, kBitXor) + " ^ " + operand(b, kBitXor + 1), kBitXor, most,
            [=](Place p) { return double(int64_t(x(p)) ^ int64_t(y(p))); }};
  default:
    return {operand(a, kShift) + " >> 3", kShift, a.most, [=](Place p) { return double(int64_t(x(p)) >> 3); }};
  }
}

RandomValue RandomForms::integer(unsigned depth) {
  if (depth == 0)
    return integerLeaf();
  if (draw(0, 3) == 0)
    return bits(depth - 1);
  RandomValue a = integer(depth - 1), b = integer(depth - 1);
  const auto x = a.evaluate, y = b.evaluate;
  const int64_t kind = draw(0, 8);
  if (kind == 0 && a.most + b.most < kMost)
    return {operand(a, kSum) + " + " + operand(b, kSum + 1), kSum, a.most + b.most,
            [=](Place p) { return x(p) + y(p); }};
  if (kind == 1 && a.most + b.most < kMost)
    return {operand(a, kSum) + " - " + operand(b, kSum + 1), kSum, a.most + b.most,
            [=](Place p) { return x(p) - y(p); }};
  if (kind == 2 && a.most * b.most < kMost)
    return {operand(a, kProduct) + " * " + operand(b, kProduct + 1), kProduct, a.most * b.most,
            [=](Place p) { return x(p) * y(p); }};
  if (kind == 3)
    return {"floor_div(" + a.text + ", max(" + b.text + ", 2))", kPrimary, a.most,
            [=](Place p) { return std::floor(x(p) / std::max(y(p), 2.0)); }};
  if (kind == 4)
    return {"floor_mod(" + a.text + ", n)", kPrimary, 50, [=](Place p) {
              const double n = p.arguments.numbers.at("n");
              return x(p) - n * std::floor(x(p) / n);
            }};
  if (kind == 5)
    return {"c[" + a.text + ", " + b.text + "]", kPrimary, 20, [=](Place p) { return readOf(p, "c", {x(p), y(p)}); }};
  if (kind == 6) {
    const RandomValue c = truth(depth - 1);
    const auto z = c.evaluate;
    return {operand(c, kOr) + " ? " + operand(a, kSelect) + " : " + operand(b, kSelect), kSelect,
            std::max(a.most, b.most), [=](Place p) { return z(p) != 0 ? x(p) : y(p); }};
  }
  if (kind == 7)
    return {"-" + operand(a, kUnary), kUnary, a.most, [=](Place p) { return -x(p); }};
  return {"max(" + a.text + ", abs(" + b.text + "))", kPrimary, std::max(a.most, b.most),
          [=](Place p) { return std::max(x(p), std::abs(y(p))); }};
}

RandomValue RandomForms::truth(unsigned depth) {
  if (depth == 0 || draw(0, 5) == 0)
    return {"d[b, k]", kPrimary, 1,
            [](Place p) { return readOf(p, "d", {double(p.element.batch), double(p.element.key)}); }};
  if (draw(0, 1) == 0) {
    RandomValue a = truth(depth - 1), b = truth(depth - 1);
    const auto x = a.evaluate, y = b.evaluate;
    switch (draw(0, 2)) {
    case 0:
      return {operand(a, kAnd) + " && " + operand(b, kAnd + 1), kAnd, 1,
              [=](Place p) { return double(x(p) != 0 && y(p) != 0); }};
    case 1:
      return {operand(a, kOr) + " || " + operand(b, kOr + 1), kOr, 1,
              [=](Place p) { return double(x(p) != 0 || y(p) != 0); }};
    default:
      return {"!" + operand(a, kUnary), kUnary, 1, [=](Place p) { return double(x(p) == 0); }};
    }
  }
  RandomValue a = integer(depth - 1), b = integer(depth - 1);
  const auto x = a.evaluate, y = b.evaluate;
  switch (draw(0, 3)) {
  case 0:
    return {operand(a, kLess) + " < " + operand(b, kLess + 1), kLess, 1, [=](Place p) { return double(x(p) < y(p)); }};
  case 1:
    return {operand(a, kLess) + " >= " + operand(b, kLess + 1), kLess, 1,
            [=](Place p) { return double(x(p) >= y(p)); }};
  case 2:
    return {operand(a, kEqual) + " == " + operand(b, kEqual + 1), kEqual, 1,
            [=](Place p) { return double(x(p) == y(p)); }};
  default:
    return {operand(a, kEqual) + " != " + operand(b, kEqual + 1), kEqual, 1,
            [=](Place p) { return double(x(p) != y(p)); }};
  }
}

RandomValue RandomForms::realLeaf() {
  const int64_t eighths = draw(0, 7);
  switch (draw(0, 4)) {
  case 0:
    return {"t", kPrimary, 0, [](Place p) { return p.arguments.numbers.at("t"); }};
  case 1:
    return {"a[h]", kPrimary, 0, [](Place p) { return readOf(p, "a", {double(p.element.head)}); }};
  case 2:
    return {"3." + std::to_string(125 * eighths), kPrimary, 0,
            [=](Place) { return std::stod("3." + std::to_string(125 * eighths)); }};
  default:
    return {"s", kPrimary, 0, [](Place p) { return p.element.score; }};
  }
}

/// A sum beyond 2^14 is that of f32 (docs/Checking.md).
static double sumInF32(double sum) { return std::abs(sum) > 16384 ? double(float(sum)) : sum; }

RandomValue RandomForms::real(unsigned depth) {
  if (depth == 0)
    return realLeaf();
  RandomValue a = real(depth - 1), b = real(depth - 1);
  const auto x = a.evaluate, y = b.evaluate;
  switch (draw(0, 7)) {
  case 0:
    return {operand(a, kSum) + " + " + operand(b, kSum + 1), kSum, 0, [=](Place p) { return sumInF32(x(p) + y(p)); }};
  case 1:
    return {operand(a, kSum) + " - " + operand(b, kSum + 1), kSum, 0, [=](Place p) { return sumInF32(x(p) - y(p)); }};
  case 2:
    return {operand(a, kProduct) + " * " + operand(b, kProduct + 1), kProduct, 0, [=](Place p) { return x(p) * y(p); }};
  case 3:
    return {operand(a, kProduct) + " / t", kProduct, 0, [=](Place p) { return x(p) / p.arguments.numbers.at("t"); }};
  case 4:
    return {"tanh(" + a.text + ")", kPrimary, 0, [=](Place p) { return std::tanh(x(p)); }};
  case 5: {
    const RandomValue c = integer(depth - 1);
    const auto z = c.evaluate;
    return {"f32(" + c.text + ")", kPrimary, 0, [=](Place p) { return z(p); }};
  }
  case 6: {
    const RandomValue c = truth(depth - 1);
    const auto z = c.evaluate;
    return {operand(c, kOr) + " ? " + operand(a, kSelect) + " : " + operand(b, kSelect), kSelect, 0,
            [=](Place p) { return z(p) != 0 ? x(p) : y(p); }};
  }
  default:
    return {"min(" + a.text + ", sqrt(abs(" + b.text + ")))", kPrimary, 0,
            [=](Place p) { return std::fmin(x(p), std::sqrt(std::abs(y(p)))); }};
  }
}

} // namespace fagen

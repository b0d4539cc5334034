// fagen: random forms that say what they are: a text, and a tree that gives its own values.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lab/reference/form.h"

#include <functional>
#include <random>
#include <string>

namespace fagen {

/// What an element has, for trees.
struct RandomPlace {
  const lab::Shape &shape;
  const lab::FormArguments &arguments;
  const lab::FormElement &element;
};

/// One value. Its text has parentheses only where precedence asks for them, and some more.
struct RandomValue {
  std::string text;
  unsigned precedence = 0; ///< of its operator; the more, the tighter
  int64_t most = 0;        ///< an integer is within -most to most
  std::function<double(const RandomPlace &)> evaluate;
};

class RandomForms {
public:
  explicit RandomForms(uint64_t seed) : random(seed) {}

  RandomValue truth(unsigned depth);
  RandomValue integer(unsigned depth);
  RandomValue real(unsigned depth);

  /// The params that values may name.
  static std::string params();
  lab::FormArguments arguments();
  int64_t draw(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); }

private:
  RandomValue integerLeaf();
  RandomValue realLeaf();
  RandomValue bits(unsigned depth);
  std::string operand(const RandomValue &value, unsigned least);

  std::mt19937_64 random;
};

} // namespace fagen

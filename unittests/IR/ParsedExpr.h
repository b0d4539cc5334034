// fagen: expressions of texts, and what they are for given values, for tests.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/Expr.h"

#include "gtest/gtest.h"

#include <map>
#include <optional>
#include <string>

using Values = std::map<std::string, int64_t>;

/// The test fails where the text is none.
inline fagen::ir::Expr parse(llvm::StringRef text) {
  std::string error;
  fagen::ir::Expr expr = fagen::ir::parseExpr(text, error);
  EXPECT_TRUE(expr) << text.str() << ": " << error;
  return expr;
}

/// The test fails where the text is one.
inline std::string parseError(llvm::StringRef text) {
  std::string error;
  EXPECT_FALSE(fagen::ir::parseExpr(text, error)) << text.str();
  return error;
}

/// Nothing where it names what has no value.
inline std::optional<int64_t> valueOf(const fagen::ir::Expr &expr, const Values &values) {
  return expr.evaluate([&](llvm::StringRef name) -> std::optional<int64_t> {
    auto it = values.find(name.str());
    return it == values.end() ? std::nullopt : std::optional(it->second);
  });
}

/// The test fails where it names what has no value.
inline int64_t evaluate(const fagen::ir::Expr &expr, const Values &values) {
  const std::optional<int64_t> value = valueOf(expr, values);
  EXPECT_TRUE(value) << expr.str();
  return value.value_or(0);
}

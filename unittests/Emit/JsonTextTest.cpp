// fagen: JSON text is what LLVM's stream writes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../../lib/Emit/JsonText.h"

#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

using namespace fagen;
using namespace llvm;

static std::string streamed(const json::Value &value) {
  std::string text;
  raw_string_ostream os(text);
  json::OStream(os, 2).value(value);
  return text;
}

static std::string appended(const json::Value &value, unsigned column = 0) {
  std::string text;
  appendJson(text, value, column);
  return text;
}

TEST(JsonText, IsThatOfTheStream) {
  const json::Value values[] = {
      nullptr,
      true,
      false,
      0,
      7,
      -7,
      0.0,
      -0.0,
      0.95,
      3.0,
      1e15,
      1e18,
      1e300,
      std::numeric_limits<int64_t>::max(),
      std::numeric_limits<int64_t>::min(),
      std::numeric_limits<uint64_t>::max(),
      "",
      "plain",
      "a \"b\" \\c\\",
      "line\nend\t\x01",
      "\xc3\xa9",
      json::Array{},
      json::Object{},
      json::Array{1, json::Array{}, "x"},
      json::Object{{"b", 1}, {"a", json::Object{{"k\"", json::Array{1, 2.5}}}}, {"", nullptr}}};
  for (const json::Value &value : values)
    EXPECT_EQ(appended(value), streamed(value));
}

TEST(JsonText, BeginsAtAColumn) {
  EXPECT_EQ(appended(json::Array{1, json::Object{{"a", 2}}}, 4),
            "[\n      1,\n      {\n        \"a\": 2\n      }\n    ]");
}

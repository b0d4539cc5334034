// fagen: JSON becomes values that know their lines; what is no JSON is refused with the line.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "json.h"

#include <gtest/gtest.h>

using namespace fagen;

namespace {

/// "LINE: WHAT" of the refusal; empty where there is none.
std::string errorOf(std::string_view text) {
  try {
    parseJson(text);
  } catch (const JsonError &error) {
    return std::to_string(error.line) + ": " + error.what();
  }
  return "";
}

TEST(Json, ValuesAndTheirLines) {
  const Json root = parseJson("{\"a\": [1, -2.5e1,\n true, null],\n\"b\": {\"c\": \"x\"}, \"d\": []}\n");
  EXPECT_EQ(root.kind, Json::Object);
  const Json &a = *root.find("a");
  ASSERT_EQ(a.items.size(), 4u);
  EXPECT_EQ(a.items[0].whole, 1);
  EXPECT_EQ(a.items[0].line, 1u);
  EXPECT_EQ(a.items[1].kind, Json::Decimal);
  EXPECT_EQ(a.items[1].decimal, -25.0);
  EXPECT_EQ(a.items[2].kind, Json::Boolean);
  EXPECT_EQ(a.items[2].whole, 1);
  EXPECT_EQ(a.items[2].line, 2u);
  EXPECT_EQ(a.items[3].kind, Json::Null);
  EXPECT_EQ(root.find("b")->find("c")->text, "x");
  EXPECT_EQ(root.find("b")->line, 3u);
  EXPECT_TRUE(root.find("d")->items.empty());
  EXPECT_EQ(root.find("e"), nullptr);
}

TEST(Json, NumbersAtTheirLimits) {
  EXPECT_EQ(parseJson("9223372036854775807").whole, INT64_MAX);
  EXPECT_EQ(parseJson("-9223372036854775808").whole, INT64_MIN);
  EXPECT_EQ(parseJson("9223372036854775808").kind, Json::Decimal);
  EXPECT_EQ(errorOf("1e999"), "1: has the number '1e999', which is too large or too small");
  EXPECT_EQ(errorOf("01"), "1: has '1' after its value");
  EXPECT_EQ(errorOf("-"), "1: has nothing more where a digit belongs");
  EXPECT_EQ(errorOf("1.e5"), "1: has 'e' where a digit belongs");
}

TEST(Json, Texts) {
  EXPECT_EQ(parseJson(R"("a\"\\\/\n\t")").text, "a\"\\/\n\t");
  EXPECT_EQ(parseJson(R"("\u0041\u00e9\u20ac\ud83d\ude00")").text, "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(errorOf("\"a"), "1: ends within a text");
  EXPECT_EQ(errorOf("\"a\nb\""), "1: has a control character in a text");
  EXPECT_EQ(errorOf(R"("\u0000")"), "1: has a control character in a text");
  EXPECT_EQ(errorOf(R"("\ud83d")"), "1: has half a character in a text");
  EXPECT_EQ(errorOf(R"("\ud83d\u0041")"), "1: has a control character in a text");
  EXPECT_EQ(errorOf(R"("\u12g4")"), "1: has an escape \\u without four hexadecimal digits");
  EXPECT_EQ(errorOf("\"\\u12"), "1: has an escape \\u without four hexadecimal digits");
  EXPECT_EQ(errorOf(R"("\x")"), "1: has the escape '\\x' in a text");
}

TEST(Json, TextsAreUtf8) {
  const char *const good[] = {"\xc2\x80",     "\xdf\xbf",         "\xe0\xa0\x80",    "\xed\x9f\xbf",
                              "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"};
  for (const std::string text : good)
    EXPECT_EQ(parseJson("\"" + text + "\"").text, text);
  // A byte alone, longer spellings than a character needs, surrogates, what is too large, what ends early.
  const char *const bad[] = {"\x80",
                             "\xff",
                             "\xc1\xbf",
                             "\xe0\x9f\xbf",
                             "\xed\xa0\x80",
                             "\xf0\x8f\xbf\xbf",
                             "\xf4\x90\x80\x80",
                             "\xf5\x80\x80\x80",
                             "\xe2\x82",
                             "\xe2\x82z"};
  for (const std::string text : bad) {
    EXPECT_NE(errorOf("[1,\n\"a" + text + "\"]").find("2: has the text 'a?"), std::string::npos) << text;
    EXPECT_NE(errorOf("{\"" + text + "\": 1}").find("which is not UTF-8"), std::string::npos) << text;
  }
  EXPECT_EQ(errorOf("\xff"), "1: has '?' where a value belongs");
}

TEST(Json, WhatIsNone) {
  EXPECT_EQ(errorOf(""), "1: has nothing more where a value belongs");
  EXPECT_EQ(errorOf("{\n"), "2: has nothing more where a key in quotes belongs");
  EXPECT_EQ(errorOf("{\"a\" 1}"), "1: has '1' where ':' belongs");
  EXPECT_EQ(errorOf("[1\n2]"), "2: has '2' where ',' or ']' belongs");
  EXPECT_EQ(errorOf("[1,]"), "1: has ']' where a value belongs");
  EXPECT_EQ(errorOf("{} {}"), "1: has '{' after its value");
  EXPECT_EQ(errorOf("nul"), "1: has 'n' where a value belongs");
  EXPECT_EQ(errorOf("{\"a\": 1,\n\"a\": 2}"), "2: has the key 'a' twice");
  EXPECT_EQ(errorOf(std::string(64, '[') + std::string(64, ']')), "");
  EXPECT_EQ(errorOf(std::string(1000000, '[')), "1: nests deeper than 64 values");
}

TEST(Json, QuotedForMessages) {
  EXPECT_EQ(inQuotes("a\x01z\xc3"), "'a?z?'");
  EXPECT_EQ(inQuotes(std::string(100, 'x')), "'" + std::string(60, 'x') + "...'");
}

} // namespace

// fagen: values of settings: axes, items, tune, dims, pairs, words, bytes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tune may stand for a whole item or for one dim of it. Both become a list of choices here, in the order in which a
// reader would count them: `16 x tune(64, 128)` is 16 x 64, then 16 x 128.

#include "ParserImpl.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace fagen {

bool Parser::parseSetting(ast::Setting &setting) {
  if (!expectName(setting.key, "a key"))
    return false;
  const bool parsed = expect("=", "after the key", keyHint(setting.key.text)) && parseValue(setting.value) &&
                      expectSemicolon("after the value", valueHint());
  if (!parsed && lost)
    lost->keys.push_back(setting.key.text);
  return parsed;
}

bool Parser::parseValue(ast::Value &value) {
  SMLoc begin = here();
  if (!accept("[")) {
    bool parsed = parseItem(value.items.emplace_back());
    value.range = rangeFrom(begin);
    return parsed;
  }
  value.isAxis = true;
  if (token.is("]"))
    return fail("this axis is empty; give it a value, or leave the key out");
  do {
    if (token.is("]"))
      return fail("expected a value, not ']'; the comma before it is too many");
    if (token.is("["))
      return fail("an axis cannot stand in an axis");
    if (!parseItem(value.items.emplace_back()))
      return false;
  } while (accept(","));
  if (!expect("]", "after the axis",
              token.kind == Token::Word || token.kind == Token::Integer ? "; values stand with commas between" : ""))
    return false;
  value.range = rangeFrom(begin);
  return true;
}

bool Parser::parseItem(ast::Item &item) {
  SMLoc begin = here();
  bool parsed = atTune() ? parseTuneItem(item) : parsePlains(item.choices);
  item.range = rangeFrom(begin);
  item.isTune |= item.choices.size() > 1;
  for (ast::Plain &choice : item.choices)
    if (!choice.range.isValid())
      choice.range = item.range;
  return parsed;
}

// tune(a, b) alone is the item; with `x` after it, it was only the first dim of one.
bool Parser::parseTuneItem(ast::Item &item) {
  SMRange tune = token.range();
  advance();
  advance();
  if (token.is(")"))
    return fail("this tune is empty; give it choices: tune(64, 128)");
  do {
    if (token.is(")"))
      return fail("expected a value, not ')'; the comma before it is too many");
    if (atTune())
      return fail("a tune cannot stand in a tune");
    if (!parsePlains(item.choices))
      return false;
  } while (accept(","));
  if (!expect(")", "after the choices"))
    return false;
  item.isTune = true;
  if (!token.is("x"))
    return true;
  std::vector<ast::Plain> first = std::move(item.choices);
  item.choices.clear();
  for (const ast::Plain &choice : first) {
    if (choice.kind == ast::Plain::Dims && choice.numbers.size() == 1)
      continue;
    diags.error(tune, "a tune with 'x' after it takes integers");
    return false;
  }
  std::vector<ast::Plain> rest;
  advance();
  if (!parseDims(rest))
    return false;
  for (const ast::Plain &choice : first) {
    for (const ast::Plain &tail : rest) {
      ast::Plain &joined = item.choices.emplace_back();
      joined.numbers = choice.numbers;
      append_range(joined.numbers, tail.numbers);
    }
  }
  return item.choices.size() <= kMaxChoices || fail("more than " + Twine(kMaxChoices) + " choices");
}

/// Appends the plain at the cursor; several when its dims have tunes.
bool Parser::parsePlains(std::vector<ast::Plain> &choices) {
  SMLoc begin = here();
  std::vector<ast::Plain> parsed;
  if (token.kind == Token::Decimal || token.is("-")) {
    if (!parseOtherNumber(parsed.emplace_back()))
      return false;
  } else if (token.kind == Token::Word && !atTune()) {
    if (!parseWord(parsed.emplace_back()))
      return false;
  } else if (!parseDims(parsed)) {
    return false;
  }
  ast::Plain &only = parsed.front();
  bool isOneInteger = parsed.size() == 1 && only.kind == ast::Plain::Dims && only.numbers.size() == 1;
  if (isOneInteger && accept(":")) {
    only.kind = ast::Plain::Pair;
    if (token.kind != Token::Integer)
      return fail("expected an integer after ':', not " + describeToken());
    only.numbers.push_back(token.integer);
    advance();
  } else if (isOneInteger && token.kind == Token::Word && !token.is("x") && !atNewLine()) {
    only.kind = ast::Plain::Bytes;
    if (!applyUnit(only.numbers[0]))
      return false;
  }
  for (ast::Plain &plain : parsed)
    plain.range = rangeFrom(begin);
  append_range(choices, std::move(parsed));
  return choices.size() <= kMaxChoices || fail("more than " + Twine(kMaxChoices) + " choices");
}

/// A number that no key takes. Which ones the key takes is said where the key is known.
bool Parser::parseOtherNumber(ast::Plain &plain) {
  plain.kind = ast::Plain::Other;
  accept("-");
  if (token.kind != Token::Integer && token.kind != Token::Decimal)
    return fail("expected a number after '-', not " + describeToken());
  advance();
  while (token.is("x") && (ahead.kind == Token::Integer || ahead.kind == Token::Decimal)) {
    advance();
    advance();
  }
  return true;
}

/// dim { "x" dim }: the choices are the product of those of the dims, the last dim counting fastest.
bool Parser::parseDims(std::vector<ast::Plain> &choices) {
  choices.assign(1, ast::Plain());
  do {
    std::vector<int64_t> dim;
    if (!parseDim(dim))
      return false;
    std::vector<ast::Plain> product;
    for (const ast::Plain &prefix : choices) {
      for (int64_t number : dim) {
        product.push_back(prefix);
        product.back().numbers.push_back(number);
      }
    }
    choices = std::move(product);
    if (choices.size() > kMaxChoices)
      return fail("more than " + Twine(kMaxChoices) + " choices");
    if (choices.front().numbers.size() > kMaxDepth)
      return fail("more than " + Twine(kMaxDepth) + " dims");
  } while (accept("x"));
  return true;
}

bool Parser::parseDim(std::vector<int64_t> &choices) {
  bool isTune = atTune();
  if (isTune) {
    advance();
    advance();
  }
  do {
    if (token.kind != Token::Integer)
      return fail("expected " + Twine(isTune ? "an integer" : "a value") + ", not " + describeToken() +
                  (token.is("(")   ? "; values stand without parentheses, a tile as 128 x 64"
                   : token.is("{") ? "; several values stand in [ ]"
                   : token.is("-") ? "; values have no sign"
                                   : ""));
    choices.push_back(token.integer);
    advance();
  } while (isTune && accept(","));
  return !isTune || expect(")", "after the choices");
}

bool Parser::parseWord(ast::Plain &plain) {
  plain.kind = ast::Plain::Word;
  plain.word = token.text.str();
  advance();
  if (!accept("("))
    return true;
  plain.hasArguments = true;
  if (token.is(")"))
    return fail("nothing stands in these ( ); leave them out, or say what is meant: window(window = 128)");
  do {
    if (token.kind != Token::Word && token.kind != Token::Integer)
      return fail("expected a name or an integer, not " + describeToken());
    plain.arguments.push_back({token.text.str(), token.range()});
    advance();
    if (token.is("=") && !parseBound(plain))
      return false;
  } while (accept(","));
  if (!plain.values.empty() && plain.values.size() != plain.arguments.size())
    return fail("either all arguments have '= number' or none has");
  return expect(")", "after the arguments");
}

/// "= number" after a name.
bool Parser::parseBound(ast::Plain &plain) {
  advance();
  SMLoc begin = here();
  const bool isNegative = accept("-");
  if (token.kind != Token::Integer && token.kind != Token::Decimal)
    return fail("expected a number after '=', not " + describeToken());
  ast::Number &number = plain.values.emplace_back();
  number.isInteger = token.kind == Token::Integer;
  number.value = (isNegative ? -1 : 1) * (number.isInteger ? double(token.integer) : token.decimal);
  advance();
  number.range = rangeFrom(begin);
  return true;
}

} // namespace fagen

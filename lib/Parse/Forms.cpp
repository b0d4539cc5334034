// fagen: blocks of a spec: form.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ParserImpl.h"
#include "fagen/Support/Suggest.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/SaveAndRestore.h"

#include <optional>

using namespace llvm;

namespace fagen {

bool Parser::parseForm(ast::File &file) {
  advance();
  SaveAndRestore inForm(isInForm, true);
  ast::Form &form = file.forms.emplace_back();
  form.name.range = token.range();
  form.isDamaged = true; // until its block was parsed
  return expectName(form.name, "the form's name") &&
         parseBlock("form", form.isDamaged, [&] { return parseFormPart(form); });
}

/// What a form may give.
static std::optional<ast::FormLine::Kind> resultNamed(StringRef word) {
  return StringSwitch<std::optional<ast::FormLine::Kind>>(word)
      .Case("score", ast::FormLine::Score)
      .Case("mask", ast::FormLine::Mask)
      .Case("sink", ast::FormLine::Sink)
      .Case("v_scale", ast::FormLine::VScale)
      .Default(std::nullopt);
}

bool Parser::parseFormPart(ast::Form &form) {
  if (token.is("param"))
    return parseFormParam(form);
  if (token.is("let") || resultNamed(token.text))
    return parseFormLine(form);
  StringRef near =
      token.kind == Token::Word ? nearestWord(token.text, {"param", "let", "score", "mask", "sink", "v_scale"}) : "";
  std::string hint = near.empty() ? "" : ("; did you mean '" + near + "'?").str();
  return fail("expected 'param', 'let', 'score', 'mask', 'sink' or 'v_scale', not " + describeToken() + hint);
}

/// An element with its extents.
bool Parser::parseParamType(ast::FormParam &param) {
  if (!expectName(param.type, "a type"))
    return false;
  if (!accept("["))
    return true;
  if (token.is("]"))
    return fail("expected an extent, an integer or a name, not ']'; a param of one number has no [ ]");
  do {
    if (token.kind != Token::Word && token.kind != Token::Integer)
      return fail("expected an extent, an integer or a name, not " + describeToken());
    param.extents.push_back({token.text.str(), token.range()});
    advance();
  } while (accept(","));
  if (!expect("]", "after the extents"))
    return false;
  param.isAscending = accept("ascending");
  return true;
}

bool Parser::parseFormParam(ast::Form &form) {
  SMLoc begin = here();
  advance();
  ast::Name name;
  if (!expectName(name, "the param's name"))
    return false;
  ast::FormParam &param = form.params.emplace_back();
  param.name = std::move(name);
  param.isDamaged = !parseFormParamRest(param);
  param.range = rangeFrom(begin);
  return !param.isDamaged;
}

/// What follows a param's name.
bool Parser::parseFormParamRest(ast::FormParam &param) {
  const bool isValue = token.is("=") || token.is(";") || token.kind == Token::Word;
  if (!expect(":", "before the param's type", isValue ? "; it is written param x: f32" : "") || !parseParamType(param))
    return false;
  if (accept("in")) {
    if (!expect("[", "before the param's range", "; a range is written [low, high]") || !(param.low = parseExpr()) ||
        !expect(",", "between the ends of the range") || !(param.high = parseExpr()) ||
        !expect("]", "after the param's range"))
      return false;
  }
  return expectSemicolon("after the param", token.is("=") ? "; a param has no default: each call gives it" : "");
}

bool Parser::parseFormLine(ast::Form &form) {
  ast::FormLine line;
  if (accept("let")) {
    if (!expectName(line.name, "the let's name"))
      return false;
  } else {
    line.kind = *resultNamed(token.text);
    line.name = {token.text.str(), token.range()};
    advance();
  }
  const bool isParsed = expect("=", "after '" + line.name.text + "'") && (line.value = parseExpr()) &&
                        expectSemicolon("after the value", operatorHint());
  if (!isParsed)
    line.value = nullptr;
  form.lines.push_back(std::move(line));
  return isParsed;
}

} // namespace fagen

// fagen: what was probably meant by a token that cannot stand where it does.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Hints.h"

#include "ParserImpl.h"
#include "fagen/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace fagen {

bool isPartOfKernel(const Token &token) {
  static constexpr StringLiteral kParts[] = {"problem", "schedule", "select", "claim", "require"};
  return any_of(kParts, [&](StringRef part) { return token.is(part); });
}

bool isOtherTarget(const Token &token) {
  static constexpr StringLiteral kWords[] = {"arch", "gpu", "sm", "device", "architecture"};
  return any_of(kWords, [&](StringRef word) { return token.is(word); });
}

std::string fileHint(const Token &token) {
  if (token.is("}"))
    return "; this one closes nothing: take it out";
  if (token.kind != Token::Word)
    return "";
  if (token.is("include") || token.is("import") || token.is("using"))
    return "; a file is read alone: copy here what it takes from others";
  if (isPartOfKernel(token))
    return ("; " + token.text + " stands in a kernel: kernel NAME { ... }").str();
  if (isOtherTarget(token))
    return "; a file begins with its target: target sm_89;";
  const StringRef near = nearestWord(token.text, {"target", "form", "kernel"});
  return near.empty() ? "" : ("; did you mean '" + near + "'?").str();
}

std::string kernelHint(const Token &token, const Token &ahead) {
  if (token.kind != Token::Word)
    return "";
  if (token.is("when") || token.is("otherwise"))
    return "; lines that choose a schedule stand in select { ... }";
  if (token.is("form"))
    return "; forms are declared outside of kernels, before them";
  if (ahead.is("="))
    return "; keys stand in problem { ... } or schedule { ... }";
  const StringRef near = nearestWord(token.text, {"problem", "schedule", "select", "claim", "require"});
  return near.empty() ? "" : ("; did you mean '" + near + "'?").str();
}

std::string Parser::keyHint(StringRef key) const {
  if (key == "if")
    return "; a condition is written when head_dim == 64 { ... }";
  if (key == "let" || key == "set" || key == "const" || key == "var")
    return ("; a key stands alone: " + token.text + " = ...;").str();
  return "";
}

std::string Parser::operatorHint() const {
  static constexpr std::pair<StringLiteral, StringLiteral> kOthers[] = {
      {"and", "&&"}, {"or", "||"}, {"not", "!"}, {"is", "=="}, {"&", "&&"}, {"|", "||"},
  };
  if (token.is("=") && (ahead.is("<") || ahead.is(">")))
    return ("; '=" + ahead.text + "' is written '" + ahead.text + "='").str();
  if (token.is(",") && isInForm)
    return "; truth values are joined with && or ||";
  if (token.is("in"))
    return "; a range is written low <= k && k <= high";
  if (token.is("=") || (token.is("!") && ahead.is("=")))
    return token.is("=") ? "; equality is written '=='" : "; inequality is written '!='";
  if (token.is("if"))
    return "; a choice is written 'condition ? a : b'";
  for (const auto &[other, own] : kOthers)
    if (token.is(other))
      return ("; '" + other + "' is written '" + own + "'").str();
  return "";
}

// Where an operand is missing: half of an operator that specs do not have may stand there.
std::string Parser::operandHint() const {
  const char before = lastEnd.isValid() ? lastEnd.getPointer()[-1] : '\0';
  if (token.is("*") && before == '*')
    return "; a power is written x * x, or exp2(y * log2(x)) in a form";
  if (token.is("=") && before == '=')
    return "; equality is written '==', inequality '!='";
  if (token.is(">") && before == '<')
    return "; inequality is written '!='";
  if (before == '%')
    return "; a per cent is written as a factor: 0.05";
  return token.is("]") ? "; a range is written [low, high]" : "";
}

std::string Parser::emptyHint() const {
  if (!token.is(";") || !lastEnd.isValid())
    return "";
  return lastEnd.getPointer()[-1] == '}' ? "; none follows a '}'" : "; this ';' is one too many";
}

std::string Parser::nameHint() const {
  if (token.is("-"))
    return "; names have _ in its place";
  return "";
}

/// The rest of a line that was to divide by //.
std::string Parser::commentHint() const {
  if (!lastEnd.isValid() || token.kind == Token::End)
    return "";
  const StringRef gap(lastEnd.getPointer(), token.text.begin() - lastEnd.getPointer());
  return isInForm && gap.take_until([](char c) { return c == '\n'; }).contains("//")
             ? "; // begins a comment; integers are divided by floor_div(a, b)"
             : "";
}

std::string Parser::valueHint() const {
  if (token.is("+") || token.is("-") || token.is("/"))
    return "; values are not calculated: write the result";
  if (token.is(","))
    return "; several values stand in [ ], and a tile is written 128 x 64";
  if (token.is("*"))
    return "; a tile is written 128 x 64";
  return "";
}

} // namespace fagen

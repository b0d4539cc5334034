// fagen: the recursive-descent parser's state, shared by its files (blocks, values, expressions).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Parse/AST.h"
#include "fagen/Parse/Lexer.h"

namespace fagen {

/// A function that parses something returns false, or null, after it has reported a mistake; whoever owns the enclosing
/// statement then calls recover().
class Parser {
public:
  Parser(llvm::StringRef text, Diagnostics &diags)
      : diags(diags), lexer(text, diags), token(lexer.next()), ahead(lexer.next()) {}

  ast::File parseFile();

private:
  // Tokens.
  void advance();
  bool accept(llvm::StringRef text);
  bool expect(llvm::StringRef text, llvm::StringRef where, const std::string &hint = "");
  bool atNewLine() const; ///< a line ends before the token
  bool atBlockAround(llvm::StringRef what) const;
  bool expectSemicolon(llvm::StringRef where, const std::string &hint = "");
  bool expectName(ast::Name &name, llvm::StringRef what);
  bool fail(const llvm::Twine &message);
  std::string describeToken() const;
  /// How the operator that the token stands for in other languages is written; empty: it stands for none.
  std::string operatorHint() const;
  std::string operandHint() const;
  std::string emptyHint() const;
  std::string nameHint() const;
  std::string commentHint() const;
  /// After a word that was taken for a key, and has no '='.
  std::string keyHint(llvm::StringRef key) const;
  /// What may have been meant where a value ends, and the token follows.
  std::string valueHint() const;
  llvm::SMRange rangeFrom(llvm::SMLoc begin) const { return {begin, lastEnd}; }
  llvm::SMLoc here() const { return token.range().Start; }
  /// Skips to after the next `;` or block of this nesting, or to its `}`.
  void recover();
  /// Runs `statement` until the block's `}`; false when the block does not even begin.
  bool parseBlock(llvm::StringRef what, llvm::function_ref<bool()> statement);
  /// The same, and sets `isDamaged` when anything in the block was reported.
  bool parseBlock(llvm::StringRef what, bool &isDamaged, llvm::function_ref<bool()> statement);
  /// The same, and collects what was skipped.
  bool parseBlock(llvm::StringRef what, ast::Lost &skipped, llvm::function_ref<bool()> statement);

  // Blocks.
  bool parseTarget(ast::File &file);
  bool parseForm(ast::File &file);
  bool parseFormPart(ast::Form &form);
  bool parseFormParam(ast::Form &form);
  bool parseFormParamRest(ast::FormParam &param);
  bool parseParamType(ast::FormParam &param);
  bool parseFormLine(ast::Form &form);
  bool parseKernel(ast::File &file);
  bool parseKernelPart(ast::Kernel &kernel);
  bool parseProblem(ast::Kernel &kernel);
  bool parseSchedule(ast::Kernel &kernel);
  bool parseStatement(std::vector<ast::Statement> &body);
  bool parseWhen(std::vector<ast::Statement> &body);
  bool parseSelect(ast::Kernel &kernel);
  bool parseLeast(ast::Select &select);
  bool parseSelectLine(ast::Select &select);
  bool parseClaim(ast::Kernel &kernel);
  bool parseRequire(ast::Kernel &kernel);
  bool parseGate(ast::Require &require);

  // Values.
  bool parseSetting(ast::Setting &setting);
  bool parseValue(ast::Value &value);
  bool parseItem(ast::Item &item);
  bool parseTuneItem(ast::Item &item);
  bool parsePlains(std::vector<ast::Plain> &choices);
  bool parseOtherNumber(ast::Plain &plain);
  bool parseDims(std::vector<ast::Plain> &choices);
  bool parseDim(std::vector<int64_t> &choices);
  bool parseWord(ast::Plain &plain);
  bool parseBound(ast::Plain &plain);
  bool atTune() const { return token.is("tune") && ahead.is("("); }

  // Expressions, by precedence. Those of forms have choices, reads and operators of bits, too.
  std::unique_ptr<ast::Expr> parseExpr() { return isInForm ? parseSelect() : parseBinary(0); }
  std::unique_ptr<ast::Expr> parseSelect();
  std::unique_ptr<ast::Expr> parseBinary(unsigned level);
  std::unique_ptr<ast::Expr> parseUnary();
  std::unique_ptr<ast::Expr> parsePrimary();
  std::unique_ptr<ast::Expr> parseNumber();
  std::unique_ptr<ast::Expr> parseCall();
  std::unique_ptr<ast::Expr> parseRead();
  bool parseOperands(ast::Expr &expr, llvm::StringRef end, llvm::StringRef where);
  bool isChained(unsigned level, const ast::Expr &left);
  bool applyUnit(int64_t &number);

  static constexpr unsigned kMaxDepth = 64;    ///< of nested whens and of parentheses
  static constexpr unsigned kMaxChoices = 256; ///< of one item
  bool enter(unsigned &depth);

  Diagnostics &diags;
  Lexer lexer;
  Token token;
  Token ahead;
  llvm::SMLoc lastEnd;
  ast::Lost *lost = nullptr; ///< of the innermost block that keeps account of it
  bool isCutShort = false;   ///< the file ended in a block
  bool isLeftOpen = false;   ///< a block ended where another began: what follows may be its own
  bool isInForm = false;     ///< expressions are those of a form
  unsigned whenDepth = 0;
  unsigned exprDepth = 0;
};

} // namespace fagen

// fagen: the state of one form's check, shared by its files (statements, params, values).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Form/Check.h"

#include "llvm/ADT/StringMap.h"

namespace fagen::form {

/// What builds something returns null, or false, after it has reported a mistake.
class Checker {
public:
  Checker(const ast::Form &form, Diagnostics &diags) : source(form), diags(diags) {}

  std::optional<Form> check();

private:
  /// What a name stands for.
  struct Name {
    enum Kind : uint8_t { OfPlace, OfParam, OfLet } kind = OfPlace;
    unsigned index = 0;
    llvm::SMRange range; ///< where it was declared; not valid of a place
    bool isUsed = false;
    bool isBroken = false; ///< its declaration was reported: what names it is not looked at
  };

  // Statements.
  bool declare(const ast::Name &name, Name::Kind kind, unsigned index);
  void addLet(const ast::FormLine &line);
  void addResult(const ast::FormLine &line, NodePtr &result, Type type);
  bool checkPlaces(const ast::FormLine &line, const Node &value);
  void warnOfScore();
  void warnOfRounding(const ast::Expr &expr);
  void warnOfUnused();

  // Params.
  void addParam(const ast::FormParam &param);
  bool setElement(const ast::FormParam &source, Param &param);
  bool setExtents(const ast::FormParam &source, Param &param);
  std::optional<Extent> extentOf(const ast::Name &name);
  bool setRange(const ast::FormParam &source, Param &param);
  std::optional<double> numberOf(const ast::Expr &expr, bool isInteger);

  // Values.
  NodePtr value(const ast::Expr &expr);
  NodePtr literal(const ast::Expr &expr);
  NodePtr named(const ast::Expr &expr);
  NodePtr read(const ast::Expr &expr);
  NodePtr call(const ast::Expr &expr);
  NodePtr clamp(const ast::Expr &expr);
  NodePtr unary(const ast::Expr &expr);
  NodePtr binary(const ast::Expr &expr);
  NodePtr select(const ast::Expr &expr);
  std::vector<NodePtr> valuesOf(const ast::Expr &expr);
  NodePtr apply(const OpInfo &info, const ast::Expr &expr, std::vector<NodePtr> operands);
  NodePtr finish(Node node, const ast::Expr &expr);
  bool unify(std::vector<NodePtr> &operands);
  Name *lookup(llvm::StringRef name, llvm::SMRange range);
  NodePtr fail(llvm::SMRange range, const llvm::Twine &message);
  std::string rangesOf(const ast::Expr &expr, const Node &node) const;

  const ast::Form &source;
  Diagnostics &diags;
  Form form;
  llvm::StringMap<Name> names;
};

llvm::StringRef toString(Type type);
/// "a truth value", "an integer", "a real number"
llvm::StringRef describe(Type type);
/// The text of a place, in one line.
std::string textAt(llvm::SMRange range);

} // namespace fagen::form

// fagen: bodies of ops from text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an op may have stands in Ops.td; types of attributes and names of buffers are resolved here.

#include "ParseOps.h"

using namespace fagen;
using namespace fagen::ir;
using llvm::StringRef;
using llvm::Twine;

/// Bodies deeper than this are an error, so that no text can exhaust the stack.
static constexpr unsigned kMaxNesting = 64;

namespace {

class OpParser {
public:
  OpParser(Lexer &lexer, Kernel &kernel) : lexer(lexer), kernel(kernel) {}

  bool parseBody(Block &body) {
    if (++nesting > kMaxNesting)
      return lexer.error("bodies are nested deeper than " + Twine(kMaxNesting));
    if (!lexer.expect("{"))
      return false;
    while (!lexer.at("}"))
      if (!parseOp(body))
        return false;
    --nesting;
    return lexer.expect("}");
  }

private:
  bool parseOp(Block &body) {
    const char *place = lexer.position();
    StringRef name;
    if (!lexer.word(name, "an op or '}'"))
      return false;
    const std::optional<OpKind> kind = opKindByName(name);
    if (!kind)
      return unknownOp(place, name);
    body.ops.push_back(std::make_unique<Op>(*kind));
    Op &op = *body.ops.back();
    op.location.source = llvm::SMLoc::getFromPointer(place);
    op.operands.resize(opInfo(*kind).operands.size());
    const bool hasHead = *kind == OpKind::Loop ? parseLoopHead(op)
                         : *kind == OpKind::If ? parseExpression(op, Attr::Condition)
                                               : parseOperands(op) && parseAttributes(op);
    if (!hasHead || (lexer.accept("site") && !lexer.number(op.site)) || !lexer.origin(op.location) ||
        !lexer.note(op.note))
      return false;
    return !opInfo(*kind).hasBody || parseBody(op.body);
  }

  bool unknownOp(const char *place, StringRef name) {
    std::vector<StringRef> names;
    for (unsigned i = 0; i != kOpKinds; ++i)
      names.push_back(opInfo(OpKind(i)).name);
    const StringRef nearest = nearestWord(name, names);
    return lexer.error(place, "unknown op '" + name + "'" +
                                  (nearest.empty() ? std::string() : "; did you mean '" + nearest.str() + "'?"));
  }

  bool parseExpression(Op &op, Attr attribute) {
    Expr value;
    if (!lexer.expression(value))
      return false;
    op.set(attribute, value);
    return true;
  }

  /// Where a tile begins.
  bool parsePlace(Op &op, Attr attribute) {
    Expr value;
    if (!lexer.place(value))
      return false;
    op.set(attribute, value);
    return true;
  }

  bool parseString(Op &op, Attr attribute) {
    std::string value;
    if (!lexer.string(value))
      return false;
    op.set(attribute, value);
    return true;
  }

  /// variable = begin to end [carry variable step expr] [name "text"] [about "text"]
  bool parseLoopHead(Op &op) {
    StringRef variable;
    if (!lexer.word(variable, "the loop's variable"))
      return false;
    op.set(Attr::Variable, variable.str());
    if (!lexer.expect("=") || !parseExpression(op, Attr::Begin) || !lexer.expect("to") ||
        !parseExpression(op, Attr::End))
      return false;
    if (lexer.accept("carry")) {
      StringRef carry;
      if (!lexer.word(carry, "the carried variable") || !lexer.expect("step") || !parseExpression(op, Attr::Step))
        return false;
      op.set(Attr::Carry, carry.str());
    }
    return (!lexer.accept("name") || parseString(op, Attr::Name)) &&
           (!lexer.accept("about") || parseString(op, Attr::About));
  }

  /// %buffer, %ring[position], none
  bool parseOperands(Op &op) {
    if (!lexer.at("%") && !lexer.at("none"))
      return true;
    const OpInfo &info = opInfo(op.kind);
    size_t index = 0;
    do {
      if (index == info.operands.size())
        return lexer.error(info.name + " has " + Twine(info.operands.size()) + " operands");
      if (!lexer.accept("none") && !parseOperand(op.operands[index]))
        return false;
      ++index;
    } while (lexer.accept(","));
    return true;
  }

  bool parseOperand(Operand &operand) {
    const char *place = lexer.position();
    std::string name;
    if (!lexer.nameAfter("%", name, "a buffer's name"))
      return false;
    operand.buffer = kernel.buffer(name);
    if (!operand.buffer)
      return lexer.error(place, "unknown buffer '%" + name + "'");
    return !lexer.accept("[") || (lexer.expression(operand.position) && lexer.expect("]"));
  }

  /// {name = value, ...}
  bool parseAttributes(Op &op) {
    if (!lexer.accept("{"))
      return true;
    if (lexer.accept("}"))
      return true;
    do {
      if (!parseAttribute(op))
        return false;
    } while (lexer.accept(","));
    return lexer.expect("}");
  }

  bool unknownAttribute(const OpInfo &info, StringRef name, const char *place) {
    std::vector<StringRef> known;
    for (const AttributeInfo &attribute : info.attributes)
      known.push_back(attribute.name);
    const StringRef near = nearestWord(name, known);
    const std::string remedy = known.empty()  ? "it takes none"
                               : near.empty() ? "it has " + alternatives(known)
                                              : ("did you mean '" + near + "'?").str();
    return lexer.error(place, info.name + " has no attribute '" + name + "'; " + remedy);
  }

  bool parseAttribute(Op &op) {
    const char *place = lexer.position();
    StringRef name;
    if (!lexer.word(name, "an attribute"))
      return false;
    const OpInfo &info = opInfo(op.kind);
    const auto *attribute = llvm::find_if(info.attributes, [&](const AttributeInfo &a) { return a.name == name; });
    if (attribute == info.attributes.end())
      return unknownAttribute(info, name, place);
    if (op.has(attribute->attr))
      return lexer.error(place, "attribute '" + name + "' is given twice");
    if (!lexer.expect("="))
      return false;
    if (attribute->real)
      return lexer.anyExpression(op.attributes[attribute->attr].emplace<Expr>());
    if (attribute->attr == Attr::Row || attribute->attr == Attr::Key || attribute->attr == Attr::Column)
      return parsePlace(op, attribute->attr);
    if (attribute->type == AttributeType::Expression)
      return parseExpression(op, attribute->attr);
    if (attribute->type == AttributeType::String)
      return parseString(op, attribute->attr);
    int64_t value = 0;
    if (!lexer.number(value))
      return false;
    op.set(attribute->attr, value);
    return true;
  }

  Lexer &lexer;
  Kernel &kernel;
  unsigned nesting = 0;
};

} // namespace

bool ir::parseBody(Lexer &lexer, Kernel &kernel, Block &body) { return OpParser(lexer, kernel).parseBody(body); }

// fagen: the IR from text, the inverse of Printer.cpp.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recursive descent without a token stream: the cursor is the rest of the buffer. The first error ends the parse, since
// .fair files are written by fagen and by tests. What an op may have stands in Ops.td; types of attributes and names of
// buffers are resolved here, everything else is the verifier's.

#include "fagen/IR/Names.h"
#include "fagen/Support/Diagnostics.h"
#include "fagen/Support/Suggest.h"

#include "llvm/ADT/StringExtras.h"

using namespace fagen;
using namespace fagen::ir;
using llvm::SMLoc;
using llvm::StringRef;
using llvm::Twine;

namespace {

/// Bodies deeper than this are an error, so that no text can exhaust the stack.
constexpr unsigned kMaxNesting = 64;

/// Words, numbers, strings and punctuation at the cursor. Members that return bool report what they miss.
class Lexer {
public:
  Lexer(StringRef text, Diagnostics &diags) : rest(text), diags(diags) {}

  bool error(const char *place, const Twine &message) {
    if (!failed)
      diags.error(llvm::SMRange(SMLoc::getFromPointer(place), SMLoc::getFromPointer(place)), message);
    failed = true;
    return false;
  }
  bool error(const Twine &message) { return error(position(), message); }

  const char *position() {
    skipSpace();
    return rest.data();
  }
  SMLoc location() { return SMLoc::getFromPointer(position()); }
  bool atEnd() {
    skipSpace();
    return rest.empty();
  }

  bool at(StringRef token) {
    skipSpace();
    if (!rest.starts_with(token))
      return false;
    return !isWordCharacter(token.back()) || rest.size() == token.size() || !isWordCharacter(rest[token.size()]);
  }
  /// Drops the token if it stands at the cursor.
  bool accept(StringRef token) {
    if (!at(token))
      return false;
    rest = rest.drop_front(token.size());
    return true;
  }
  bool expect(StringRef token) { return accept(token) || error("expected '" + token + "'"); }

  StringRef peekWord() {
    skipSpace();
    return rest.take_while(isWordCharacter);
  }
  bool word(StringRef &result, const Twine &what) {
    result = peekWord();
    if (result.empty() || llvm::isDigit(result.front()))
      return error("expected " + what);
    rest = rest.drop_front(result.size());
    return true;
  }
  /// A name of digits is a name too: %0, @7.
  bool nameAfter(StringRef sigil, std::string &result, const Twine &what) {
    if (!expect(sigil))
      return false;
    result = rest.take_while(isWordCharacter).str();
    if (result.empty())
      return error("expected " + what + " after '" + sigil + "'");
    rest = rest.drop_front(result.size());
    return true;
  }

  template <typename Integer> bool number(Integer &result) {
    skipSpace();
    const bool negative = std::is_signed_v<Integer> && rest.starts_with("-");
    const StringRef digits = rest.drop_front(negative).take_while(llvm::isDigit);
    if (digits.empty())
      return error("expected a number");
    const StringRef text = rest.take_front(digits.size() + negative);
    if (text.getAsInteger(10, result))
      return error("number '" + text + "' does not fit in " + Twine(8 * sizeof(Integer)) + " bits");
    rest = rest.drop_front(text.size());
    return true;
  }

  /// "text" with \\ and \HH.
  bool string(std::string &result) {
    if (!at("\""))
      return error("expected a string");
    const char *begin = position();
    rest = rest.drop_front();
    result.clear();
    while (!rest.empty() && rest.front() != '"' && rest.front() != '\n')
      if (!stringCharacter(result))
        return false;
    if (!rest.consume_front("\""))
      return error(begin, "string has no end");
    return true;
  }

  /// Of integers and truth values.
  bool expression(Expr &result) {
    const char *begin = position();
    if (!anyExpression(result))
      return false;
    return isOfIntegers(result) ||
           error(begin, "expected an expression of integers; real numbers, '?:', '!' and elements of buffers stand in "
                        "the value of a map");
  }
  bool anyExpression(Expr &result) {
    std::string message;
    result = consumeExpr(rest, message);
    return result || error(rest.data(), message);
  }

  Diagnostics &getDiagnostics() { return diags; }

private:
  static bool isWordCharacter(char c) { return llvm::isAlnum(c) || c == '_'; }

  bool stringCharacter(std::string &result) {
    if (rest.front() != '\\') {
      result += rest.front();
      rest = rest.drop_front();
      return true;
    }
    if (rest.starts_with("\\\\")) {
      result += '\\';
      rest = rest.drop_front(2);
      return true;
    }
    if (rest.size() < 3 || !llvm::isHexDigit(rest[1]) || !llvm::isHexDigit(rest[2]))
      return error("expected two hexadecimal digits after '\\'");
    result += char(llvm::hexFromNibbles(rest[1], rest[2]));
    rest = rest.drop_front(3);
    return true;
  }

  void skipSpace() {
    for (;;) {
      rest = rest.ltrim();
      if (!rest.starts_with("//"))
        return;
      rest = rest.drop_until([](char c) { return c == '\n'; });
    }
  }

  StringRef rest;
  Diagnostics &diags;
  bool failed = false;
};

template <typename Range> std::string listOfNames(const Range &values) {
  std::vector<StringRef> names;
  for (const auto &value : values)
    names.push_back(toString(value));
  return alternatives(names);
}

class Parser {
public:
  Parser(StringRef text, Diagnostics &diags) : lexer(text, diags) {}

  bool parseProgram(Program &program) {
    if (!lexer.expect("program") || !lexer.nameAfter("@", program.name, "the program's name") || !lexer.expect("{"))
      return false;
    while (!lexer.at("}")) {
      program.kernels.push_back(std::make_unique<Kernel>());
      if (!parseKernel(*program.kernels.back()))
        return false;
    }
    return lexer.expect("}") && (lexer.atEnd() || lexer.error("expected the end of the file"));
  }

private:
  template <typename Enum, typename Values> bool enumeration(Enum &result, const Values &values, const Twine &what) {
    const StringRef text = lexer.peekWord();
    if (std::optional<Enum> value = fromString<Enum>(text, values)) {
      result = *value;
      return lexer.accept(text);
    }
    return lexer.error("expected a " + what + ": " + listOfNames(values));
  }

  // Kernels and what they declare.

  bool parseKernel(Kernel &parsed) {
    kernel = &parsed;
    parsed.location.source = lexer.location();
    if (!lexer.expect("kernel") || !lexer.nameAfter("@", parsed.symbol, "the kernel's symbol"))
      return false;
    StringRef target, backend;
    if (!lexer.expect("target") || !lexer.word(target, "a target") || !lexer.expect("backend") ||
        !lexer.word(backend, "a backend") || !lexer.expect("threads") || !lexer.number(parsed.threads) ||
        !lexer.expect("phase") || !enumeration(parsed.phase, kPhases, "phase"))
      return false;
    parsed.target = target.str();
    parsed.backend = backend.str();
    if (lexer.accept("shared") && !lexer.number(parsed.sharedBytes))
      return false;
    if (!parseLocation(parsed.location) || !lexer.expect("{"))
      return false;
    while (!lexer.at("}"))
      if (!parseDeclaration())
        return false;
    return resolveGuards() && lexer.expect("}");
  }

  /// Mbarriers may be declared behind what they guard.
  bool resolveGuards() {
    for (const GuardName &name : std::exchange(guardNames, {})) {
      Buffer *const bar = kernel->buffer(name.bar);
      if (!bar)
        return lexer.error(name.place, "unknown buffer '%" + name.bar + "'");
      Guard &guard = *kernel->buffer(name.buffer)->guard;
      (name.isFull ? guard.full : guard.empty) = bar;
    }
    return true;
  }

  bool parseDeclaration() {
    if (lexer.at("about"))
      return lexer.expect("about") && lexer.string(kernel->about.emplace_back());
    if (lexer.at("options"))
      return parseOptions();
    if (lexer.at("grid"))
      return parseGrid();
    if (lexer.at("size"))
      return parseSizes();
    if (lexer.at("param"))
      return parseParam();
    if (lexer.at("view"))
      return parseView();
    if (lexer.at("const"))
      return parseConstant();
    if (lexer.at("let"))
      return parseLet();
    if (lexer.at("site"))
      return parseLedgerEntry();
    if (lexer.at("role"))
      return parseRole();
    const StringRef word = lexer.peekWord();
    const std::optional<Space> space = fromString<Space>(word, kSpaces);
    if (!space)
      return lexer.error(
          "expected about, options, grid, size, param, const, global, view, shared, fragment, let, site, role "
          "or '}'");
    return lexer.expect(word) && parseBuffer(*space);
  }

  /// options {refill = late, ...}
  bool parseOptions() {
    if (!lexer.expect("options") || !lexer.expect("{"))
      return false;
    do {
      if (!parseOption())
        return false;
    } while (lexer.accept(","));
    return lexer.expect("}");
  }

  bool parseOption() {
    StringRef name;
    if (!lexer.word(name, "an option"))
      return false;
    bool isKnown = false, isSound = true;
    std::vector<StringRef> names;
    Options::forEach(kernel->options, [&](StringRef option, auto &slot) {
      names.push_back(option);
      if (option == name) {
        isKnown = true;
        isSound = parseOptionValue(name, slot);
      }
    });
    return isKnown ? isSound
                   : lexer.error(name.data(), "unknown option '" + name + "'; a kernel has " + alternatives(names));
  }

  template <typename Enum> bool parseOptionValue(StringRef name, std::optional<Option<Enum>> &slot) {
    if (slot)
      return lexer.error(name.data(), "option '" + name + "' is given twice");
    slot.emplace();
    slot->location.source = SMLoc::getFromPointer(name.data());
    return lexer.expect("=") && enumeration(slot->value, kValuesOf<Enum>, "value of '" + name + "'") &&
           parseLocation(slot->location);
  }

  /// grid persistent, grid splits 4
  bool parseGrid() {
    const char *place = lexer.position();
    if (kernel->grid.kind != CtaGrid::Tiles || !kernel->grid.indices.empty())
      return lexer.error(place, "the grid is given twice");
    if (!lexer.expect("grid") || !enumeration(kernel->grid.kind, kGridKinds, "grid"))
      return false;
    if (CtaGrid::hasNumber(kernel->grid.kind) && !lexer.number(kernel->grid.number))
      return false;
    return !lexer.accept("(") || parseGridIndices();
  }

  /// m in ceil_div(M, 128), n in ...)
  bool parseGridIndices() {
    do {
      GridIndex &index = kernel->grid.indices.emplace_back();
      StringRef name;
      if (!lexer.word(name, "an index of the grid") || !lexer.expect("in") || !lexer.expression(index.extent))
        return false;
      index.name = name.str();
    } while (lexer.accept(","));
    return lexer.expect(")");
  }

  /// size M, N
  bool parseSizes() {
    lexer.expect("size");
    do {
      StringRef name;
      if (!lexer.word(name, "a size's name"))
        return false;
      kernel->sizes.push_back(name.str());
    } while (lexer.accept(","));
    return true;
  }

  bool parseConstant() {
    Constant constant;
    constant.location.source = lexer.location();
    StringRef name;
    if (!lexer.expect("const") || !lexer.word(name, "a constant's name"))
      return false;
    if (kernel->hasConstant(name))
      return lexer.error(name.data(), "constant '" + name + "' is declared twice");
    constant.name = name.str();
    if (!lexer.expect("=") || !lexer.number(constant.value))
      return false;
    if (lexer.accept("origin") && !lexer.string(constant.origin))
      return false;
    if (!parseLocation(constant.location))
      return false;
    kernel->constants.push_back(std::move(constant));
    return true;
  }

  bool parseBuffer(Space space) {
    Buffer buffer;
    buffer.space = space;
    buffer.location.source = lexer.location();
    if (!lexer.nameAfter("%", buffer.name, "a buffer's name"))
      return false;
    if (kernel->buffer(buffer.name))
      return lexer.error(buffer.location.source.getPointer(), "buffer '%" + buffer.name + "' is declared twice");
    if (!lexer.expect(":") || !enumeration(buffer.type, kElementTypes, "type") || !lexer.expect("["))
      return false;
    if (space == Space::Global && kernel->hasOwnParams())
      return parseGlobal(std::move(buffer));
    if (!(space == Space::Global && lexer.accept("rows")) && !lexer.number(buffer.rows))
      return false;
    if (!lexer.expect("x") || !lexer.number(buffer.columns) || !lexer.expect("]") || !parseBufferProperties(buffer) ||
        !parseLocation(buffer.location))
      return false;
    kernel->addBuffer(std::move(buffer));
    return true;
  }

  /// M, K]
  bool parseShape(Buffer &buffer) {
    do {
      if (!lexer.expression(buffer.shape.emplace_back()))
        return false;
    } while (lexer.accept(","));
    return lexer.expect("]");
  }

  /// M, K] param a [strided]
  bool parseGlobal(Buffer buffer) {
    StringRef param;
    if (!parseShape(buffer) || !lexer.expect("param") || !lexer.word(param, "a parameter's name"))
      return false;
    buffer.param = param.str();
    buffer.isStrided = lexer.accept("strided");
    if (!parseLocation(buffer.location))
      return false;
    kernel->addBuffer(std::move(buffer));
    return true;
  }

  /// param window : i32 in [1, 4096], param cap : f32, param %slope : f32[heads, 16]
  bool parseParam() {
    lexer.expect("param");
    if (lexer.at("%"))
      return parseReadTensor();
    Scalar scalar;
    StringRef name;
    if (!lexer.word(name, "a parameter's name") || !lexer.expect(":"))
      return false;
    scalar.name = name.str();
    scalar.isReal = lexer.accept("f32");
    if (!scalar.isReal && !(lexer.expect("i32") && lexer.expect("in") && parseInterval(scalar.low, scalar.high)))
      return false;
    kernel->scalars.push_back(std::move(scalar));
    return true;
  }

  /// [0, 4096]
  bool parseInterval(int64_t &low, int64_t &high) {
    return lexer.expect("[") && lexer.number(low) && lexer.expect(",") && lexer.number(high) && lexer.expect("]");
  }

  bool parseReadTensor() {
    Buffer buffer;
    buffer.space = Space::Global;
    buffer.isStrided = true;
    buffer.location.source = lexer.location();
    if (!lexer.nameAfter("%", buffer.name, "a tensor's name"))
      return false;
    if (kernel->buffer(buffer.name))
      return lexer.error(buffer.location.source.getPointer(), "buffer '%" + buffer.name + "' is declared twice");
    if (!lexer.expect(":") || !enumeration(buffer.type, kElementTypes, "type") || !lexer.expect("[") ||
        !parseShape(buffer) || !parseLocation(buffer.location))
      return false;
    buffer.param = buffer.name;
    kernel->addBuffer(std::move(buffer));
    return true;
  }

  /// view %name : f16[seq, 64] = (r, c) -> %base[b, r, c]
  bool parseView() {
    Buffer view;
    view.space = Space::Global;
    AddressMap &map = view.map.emplace();
    lexer.expect("view");
    view.location.source = lexer.location();
    StringRef row, column;
    if (!lexer.nameAfter("%", view.name, "a view's name"))
      return false;
    if (kernel->buffer(view.name))
      return lexer.error(view.location.source.getPointer(), "buffer '%" + view.name + "' is declared twice");
    if (!lexer.expect(":") || !enumeration(view.type, kElementTypes, "type") || !lexer.expect("[") ||
        !parseShape(view) || !lexer.expect("=") || !lexer.expect("(") || !lexer.word(row, "the row's name") ||
        !lexer.expect(",") || !lexer.word(column, "the column's name") || !lexer.expect(")") || !lexer.expect("->") ||
        !parseGlobalElement(map.base, map.at) || !parseLocation(view.location))
      return false;
    map.row = row.str();
    map.column = column.str();
    kernel->addBuffer(std::move(view));
    return true;
  }

  /// %base[b, r, c]
  bool parseGlobalElement(Buffer *&buffer, llvm::SmallVector<Expr, 4> &at) {
    const char *place = lexer.position();
    std::string name;
    if (!lexer.nameAfter("%", name, "a buffer's name") || !lexer.expect("["))
      return false;
    buffer = kernel->buffer(name);
    if (!buffer)
      return lexer.error(place, "unknown buffer '%" + name + "'");
    do {
      if (!lexer.expression(at.emplace_back()))
        return false;
    } while (lexer.accept(","));
    return lexer.expect("]");
  }

  bool parseBufferProperties(Buffer &buffer) {
    StringRef param;
    if (lexer.accept("param") && !lexer.word(param, "a parameter's name"))
      return false;
    buffer.param = param.str();
    buffer.isPacked = lexer.accept("packed");
    if (lexer.accept("stages")) {
      buffer.isRing = true;
      if (!lexer.number(buffer.stages))
        return false;
    }
    if (lexer.accept("swizzle") && !enumeration(buffer.layout, kLayouts, "swizzle"))
      return false;
    if (lexer.accept("offset") && !lexer.number(buffer.offset.emplace()))
      return false;
    if (lexer.accept("overlays") && !lexer.nameAfter("%", buffer.overlays, "a buffer's name"))
      return false;
    return !lexer.accept("guard") || parseGuard(buffer);
  }

  /// full %bar by bytes [, empty %bar by warp [lag 1]]
  bool parseGuard(Buffer &buffer) {
    Guard &guard = buffer.guard.emplace();
    if (!lexer.expect("full") || !parseGuardName(buffer, /*isFull=*/true) || !lexer.expect("by"))
      return false;
    if (!lexer.accept("bytes") && !enumeration(guard.filledBy.emplace(), kActors, "word: bytes, or an actor"))
      return false;
    if (!lexer.accept(","))
      return true;
    return lexer.expect("empty") && parseGuardName(buffer, /*isFull=*/false) && lexer.expect("by") &&
           enumeration(guard.leftBy, kActors, "actor") && (!lexer.accept("lag") || lexer.number(guard.lag));
  }

  bool parseGuardName(const Buffer &buffer, bool isFull) {
    GuardName &name = guardNames.emplace_back(GuardName{buffer.name, {}, lexer.position(), isFull});
    return lexer.nameAfter("%", name.bar, "an mbarrier's name");
  }

  bool parseLet() {
    Let let;
    StringRef name;
    if (!lexer.expect("let") || !lexer.word(name, "a name"))
      return false;
    let.name = name.str();
    if (!(lexer.at("in") ? parseRead(let) : lexer.expect("=") && lexer.expression(let.value)) || !parseNote(let.note))
      return false;
    kernel->lets.push_back(std::move(let));
    return true;
  }

  /// in [0, 4096] = %begin[b]
  bool parseRead(Let &let) {
    GlobalElement &source = let.source.emplace();
    let.value = variable(let.name);
    return lexer.expect("in") && parseInterval(source.low, source.high) && lexer.expect("=") &&
           parseGlobalElement(source.buffer, source.at);
  }

  bool parseLedgerEntry() {
    LedgerEntry entry;
    if (!lexer.expect("site") || !lexer.number(entry.site) || !lexer.string(entry.what) || !lexer.expect("covers") ||
        !lexer.string(entry.covers))
      return false;
    kernel->ledger.push_back(std::move(entry));
    return true;
  }

  bool parseRole() {
    Role &role = kernel->roles.emplace_back();
    StringRef name;
    unsigned endWarp = 0;
    if (!lexer.expect("role") || !lexer.word(name, "a role's name") || !lexer.expect("warps") ||
        !lexer.number(role.firstWarp) || !lexer.expect("to"))
      return false;
    role.name = name.str();
    const char *place = lexer.position();
    if (!lexer.number(endWarp))
      return false;
    if (endWarp <= role.firstWarp)
      return lexer.error(place, "role '" + name + "' has no warps");
    role.warps = endWarp - role.firstWarp;
    if (lexer.accept("grid")) {
      WarpGrid &grid = role.grid.emplace();
      if (!lexer.number(grid.rows) || !lexer.expect("x") || !lexer.number(grid.columns))
        return false;
    }
    return parseBody(role.body);
  }

  /// [loc("file":line[:column])]
  bool parseLocation(Location &location) {
    if (!lexer.accept("loc"))
      return true;
    if (!lexer.expect("(") || !lexer.string(location.file) || !lexer.expect(":"))
      return false;
    const char *place = lexer.position();
    if (!lexer.number(location.line))
      return false;
    if (location.line == 0)
      return lexer.error(place, "lines count from 1");
    if (lexer.accept(":") && !lexer.number(location.column))
      return false;
    return lexer.expect(")");
  }

  /// [note("text")]
  bool parseNote(std::string &note) {
    return !lexer.accept("note") || (lexer.expect("(") && lexer.string(note) && lexer.expect(")"));
  }

  // Ops.

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
    op.location.source = SMLoc::getFromPointer(place);
    op.operands.resize(opInfo(*kind).operands.size());
    const bool hasHead = *kind == OpKind::Loop ? parseLoopHead(op)
                         : *kind == OpKind::If ? parseExpression(op, Attr::Condition)
                                               : parseOperands(op) && parseAttributes(op);
    if (!hasHead || (lexer.accept("site") && !lexer.number(op.site)) || !parseLocation(op.location) ||
        !parseNote(op.note))
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

  bool parseString(Op &op, Attr attribute) {
    std::string value;
    if (!lexer.string(value))
      return false;
    op.set(attribute, value);
    return true;
  }

  /// variable = begin to end [carry variable step expr] [name "text"]
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
    return !lexer.accept("name") || parseString(op, Attr::Name);
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
    operand.buffer = kernel->buffer(name);
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

  bool parseAttribute(Op &op) {
    const char *place = lexer.position();
    StringRef name;
    if (!lexer.word(name, "an attribute"))
      return false;
    const OpInfo &info = opInfo(op.kind);
    const auto *attribute = llvm::find_if(info.attributes, [&](const AttributeInfo &a) { return a.name == name; });
    if (attribute == info.attributes.end())
      return lexer.error(place, info.name + " has no attribute '" + name + "'");
    if (op.has(attribute->attr))
      return lexer.error(place, "attribute '" + name + "' is given twice");
    if (!lexer.expect("="))
      return false;
    if (attribute->real)
      return lexer.anyExpression(op.attributes[attribute->attr].emplace<Expr>());
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

  /// A mbarrier that the guard of a buffer names.
  struct GuardName {
    std::string buffer, bar;
    const char *place;
    bool isFull;
  };

  Lexer lexer;
  Kernel *kernel = nullptr;
  std::vector<GuardName> guardNames;
  unsigned nesting = 0;
};

} // namespace

std::unique_ptr<Program> ir::parseProgram(unsigned buffer, Diagnostics &diags) {
  auto program = std::make_unique<Program>();
  const StringRef text = diags.getSources().getMemoryBuffer(buffer)->getBuffer();
  return Parser(text, diags).parseProgram(*program) ? std::move(program) : nullptr;
}

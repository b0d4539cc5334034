// fagen: declarations of buffers from text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ParseBuffers.h"

#include "fagen/IR/Queries.h"

#include <limits>

using namespace fagen;
using namespace fagen::ir;
using llvm::StringRef;
using llvm::Twine;

bool BufferParser::parseBuffer(Space space) {
  Buffer buffer;
  buffer.space = space;
  buffer.location.source = lexer.location();
  if (!lexer.nameAfter("%", buffer.name, "a buffer's name"))
    return false;
  if (kernel.buffer(buffer.name))
    return lexer.error(buffer.location.source.getPointer(), "buffer '%" + buffer.name + "' is declared twice");
  if (!lexer.expect(":") || !lexer.enumeration(buffer.type, kElementTypes, "type") || !lexer.expect("["))
    return false;
  if (space == Space::Global && !atRows())
    return parseGlobal(std::move(buffer));
  if (!(space == Space::Global && lexer.accept("rows")) && !parseCount(buffer.rows))
    return false;
  if (!lexer.expect("x") || !parseCount(buffer.columns) || !lexer.expect("]") || !parseBufferProperties(buffer) ||
      !lexer.origin(buffer.location))
    return false;
  kernel.addBuffer(std::move(buffer));
  return true;
}

/// Whether `rows x 64]` follows, or `1 x 1]`, and not the shape of a tensor.
bool BufferParser::atRows() const {
  Lexer ahead = lexer;
  const StringRef rows = ahead.peekWord();
  return !rows.empty() && ahead.accept(rows) && ahead.accept("x");
}

/// M, K]; of a view how much memory says, too: rows of a sequence
bool BufferParser::parseShape(Buffer &buffer) {
  do {
    Expr &size = buffer.shape.emplace_back();
    if (!(buffer.map ? lexer.place(size) : lexer.expression(size)))
      return false;
  } while (lexer.accept(","));
  return lexer.expect("]");
}

/// [in [0, 100]] [ascending] [distinct [places]] [constant]
bool BufferParser::parsePromises(Buffer &buffer) {
  if (lexer.accept("in")) {
    Interval &values = buffer.values.emplace();
    if (!parseInterval(values.low, values.high))
      return false;
  }
  buffer.isAscending = lexer.accept("ascending");
  buffer.isDistinct = lexer.accept("distinct");
  buffer.arePlaces = buffer.isDistinct && lexer.accept("places");
  buffer.isConstant = lexer.accept("constant");
  return true;
}

/// M, K] param a [strided] [paired] [in [0, 100]] [ascending] [distinct [places]] [constant]
bool BufferParser::parseGlobal(Buffer buffer) {
  StringRef param;
  if (!parseShape(buffer) || !lexer.expect("param") || !lexer.word(param, "a parameter's name"))
    return false;
  buffer.param = param.str();
  buffer.isStrided = lexer.accept("strided");
  buffer.isPaired = lexer.accept("paired");
  if (!parsePromises(buffer) || !lexer.origin(buffer.location))
    return false;
  kernel.addBuffer(std::move(buffer));
  return true;
}

bool BufferParser::parseParam() {
  lexer.expect("param");
  if (lexer.at("%"))
    return parseReadTensor(/*isOfCaller=*/true);
  Scalar scalar;
  StringRef name;
  if (!lexer.word(name, "a parameter's name") || !lexer.expect(":"))
    return false;
  scalar.name = name.str();
  scalar.isReal = lexer.accept("f32");
  if (!scalar.isReal && !(lexer.expect("i32") && lexer.expect("in") && parseInterval(scalar.low, scalar.high)))
    return false;
  kernel.scalars.push_back(std::move(scalar));
  return true;
}

bool BufferParser::parseInterval(int64_t &low, int64_t &high) {
  return lexer.expect("[") && lexer.number(low) && lexer.expect(",") && lexer.number(high) && lexer.expect("]");
}

bool BufferParser::parseReadTensor(bool isOfCaller) {
  Buffer buffer;
  buffer.space = Space::Global;
  buffer.isStrided = isOfCaller;
  buffer.location.source = lexer.location();
  if (!lexer.nameAfter("%", buffer.name, "a tensor's name"))
    return false;
  if (kernel.buffer(buffer.name))
    return lexer.error(buffer.location.source.getPointer(), "buffer '%" + buffer.name + "' is declared twice");
  if (!lexer.expect(":") || !lexer.enumeration(buffer.type, kElementTypes, "type") || !lexer.expect("[") ||
      !parseShape(buffer))
    return false;
  if ((isOfCaller && !parsePromises(buffer)) || !lexer.origin(buffer.location))
    return false;
  if (isOfCaller)
    buffer.param = buffer.name;
  kernel.addBuffer(std::move(buffer));
  return true;
}

bool BufferParser::parseScratch() { return lexer.expect("scratch") && parseReadTensor(/*isOfCaller=*/false); }

/// [j]
bool BufferParser::parseIndexOfView(AddressMap &map) {
  StringRef index;
  if (!lexer.accept("["))
    return true;
  if (!lexer.word(index, "the name of the view's index") || !lexer.expect("]"))
    return false;
  map.index = index.str();
  return true;
}

/// view %name : f16[seq, 64] = (r, c) -> %base[b, r, c], view %name[j] : ...; view %name : f32[seq] = (r) -> %base[b,
/// r]
bool BufferParser::parseView() {
  Buffer view;
  view.space = Space::Global;
  AddressMap &map = view.map.emplace();
  lexer.expect("view");
  view.location.source = lexer.location();
  StringRef row, column;
  if (!lexer.nameAfter("%", view.name, "a view's name"))
    return false;
  if (kernel.buffer(view.name))
    return lexer.error(view.location.source.getPointer(), "buffer '%" + view.name + "' is declared twice");
  if (!parseIndexOfView(map) || !lexer.expect(":") || !lexer.enumeration(view.type, kElementTypes, "type") ||
      !lexer.expect("[") || !parseShape(view) || !lexer.expect("=") || !lexer.expect("(") ||
      !lexer.word(row, "the row's name") || (lexer.accept(",") && !lexer.word(column, "the column's name")) ||
      !lexer.expect(")") || !lexer.expect("->") || !parseGlobalElement(map.base, map.at) ||
      !lexer.origin(view.location))
    return false;
  map.row = row.str();
  map.column = column.str();
  kernel.addBuffer(std::move(view));
  return true;
}

/// %base[b, r, c]
bool BufferParser::parseGlobalElement(Buffer *&buffer, llvm::SmallVector<Expr, 4> &at) {
  const char *place = lexer.position();
  std::string name;
  if (!lexer.nameAfter("%", name, "a buffer's name") || !lexer.expect("["))
    return false;
  buffer = kernel.buffer(name);
  if (!buffer)
    return lexer.error(place, "unknown buffer '%" + name + "'");
  do {
    if (!lexer.place(at.emplace_back()))
      return false;
  } while (lexer.accept(","));
  return lexer.expect("]");
}

/// Whether `param a : f32` or `param %a : ...` follows, and not `param a` of the buffer in front.
bool BufferParser::atDeclarationOfParam() const {
  Lexer ahead = lexer;
  if (!ahead.accept("param"))
    return false;
  const StringRef name = ahead.peekWord();
  return ahead.at("%") || (!name.empty() && ahead.accept(name) && ahead.at(":"));
}

bool BufferParser::parseBufferProperties(Buffer &buffer) {
  StringRef param;
  buffer.isInQuads = lexer.accept("quads");
  buffer.isPaired = lexer.accept("paired");
  if (!atDeclarationOfParam() && lexer.accept("param") && !lexer.word(param, "a parameter's name"))
    return false;
  buffer.param = param.str();
  if (lexer.accept("stages")) {
    buffer.isRing = true;
    if (!parseCount(buffer.stages))
      return false;
  }
  if (lexer.accept("swizzle") && !lexer.enumeration(buffer.layout, kLayouts, "swizzle"))
    return false;
  if (lexer.accept("offset") && !lexer.number(buffer.offset.emplace()))
    return false;
  if (lexer.accept("overlays") && !parseLaterName(buffer, LaterName::Overlays, "a buffer's name"))
    return false;
  return !lexer.accept("guard") || parseGuard(buffer);
}

/// 64, kTileKeys, 16 * kHeldSlices: of constants that stand above
bool BufferParser::parseCount(Count &count) {
  const char *place = lexer.position();
  Expr written;
  if (!lexer.expression(written))
    return false;
  const std::optional<int64_t> value = constantOf(kernel, written);
  if (!value)
    return lexer.error(place, "expected a number, or an expression of constants that are declared above; got '" +
                                  written.str() + "'");
  if (*value < 0 || *value > std::numeric_limits<unsigned>::max()) {
    const std::string what = written.kind() == ExprKind::Constant
                                 ? "number '" + written.str() + "'"
                                 : "'" + written.str() + "' is " + std::to_string(*value) + ", which";
    return lexer.error(place, what + " does not fit in 32 bits");
  }
  count = Count(unsigned(*value), written);
  return true;
}

/// full %bar by bytes [, empty %bar by warp [lag 1]]
bool BufferParser::parseGuard(Buffer &buffer) {
  Guard &guard = buffer.guard.emplace();
  if (!lexer.expect("full") || !parseLaterName(buffer, LaterName::Full, "an mbarrier's name") || !lexer.expect("by"))
    return false;
  if (!lexer.accept("bytes") && !lexer.enumeration(guard.filledBy.emplace(), kActors, "word: bytes, or an actor"))
    return false;
  if (!lexer.accept(","))
    return true;
  return lexer.expect("empty") && parseLaterName(buffer, LaterName::Empty, "an mbarrier's name") &&
         lexer.expect("by") && lexer.enumeration(guard.leftBy, kActors, "actor") &&
         (!lexer.accept("lag") || lexer.number(guard.lag));
}

bool BufferParser::parseLaterName(const Buffer &buffer, LaterName::Use use, const Twine &what) {
  LaterName &name = laterNames.emplace_back(LaterName{buffer.name, {}, lexer.position(), use});
  return lexer.nameAfter("%", name.named, what);
}

bool BufferParser::resolveLaterNames() {
  for (const LaterName &name : std::exchange(laterNames, {})) {
    Buffer *const named = kernel.buffer(name.named);
    if (!named)
      return lexer.error(name.place, "unknown buffer '%" + name.named + "'");
    Buffer &buffer = *kernel.buffer(name.buffer);
    (name.use == LaterName::Overlays ? buffer.overlays
     : name.use == LaterName::Full   ? buffer.guard->full
                                     : buffer.guard->empty) = named;
  }
  return true;
}

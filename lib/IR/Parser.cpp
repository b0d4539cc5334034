// fagen: the IR from text, the inverse of Printer.cpp.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recursive descent: programs, kernels and their declarations here, buffers in ParseBuffers.cpp, grids in
// grid/ParseGrid.cpp, ops in ParseOps.cpp.
// Types of attributes and names of buffers are resolved there, everything else is the verifier's.

#include "fagen/IR/LastPass.h"

#include "ParseBuffers.h"
#include "ParseOps.h"
#include "grid/ParseGrid.h"

using namespace fagen;
using namespace fagen::ir;
using llvm::SMLoc;
using llvm::StringRef;
using llvm::Twine;

namespace {

class Parser {
public:
  Parser(StringRef text, Diagnostics &diags) : lexer(text, diags) {}

  bool parseProgram(Program &program, LastPass &last) {
    if (!lexer.expect("program") || !lexer.nameAfter("@", program.name, "the program's name") || !parseLastPass(last) ||
        !lexer.expect("{"))
      return false;
    while (!lexer.at("}")) {
      program.kernels.push_back(std::make_unique<Kernel>());
      if (!parseKernel(*program.kernels.back()))
        return false;
    }
    return lexer.expect("}") && (lexer.atEnd() || lexer.missing("the end of the file"));
  }

private:
  bool parseLastPass(LastPass &last) {
    if (!lexer.accept("after"))
      return true;
    last.source = lexer.location();
    return lexer.string(last.name);
  }

  // Kernels and what they declare.

  bool parseKernel(Kernel &parsed) {
    kernel = &parsed;
    buffers.emplace(lexer, parsed);
    parsed.location.source = lexer.location();
    if (!lexer.expect("kernel") || !lexer.nameAfter("@", parsed.symbol, "the kernel's symbol"))
      return false;
    StringRef target, backend;
    if (!lexer.expect("target") || !lexer.word(target, "a target") || !lexer.expect("backend") ||
        !lexer.word(backend, "a backend") || !lexer.expect("threads") || !lexer.number(parsed.threads) ||
        !lexer.expect("phase") || !lexer.enumeration(parsed.phase, kPhases, "phase"))
      return false;
    parsed.target = target.str();
    parsed.backend = backend.str();
    if (lexer.accept("shared") && !lexer.number(parsed.sharedBytes))
      return false;
    if (!lexer.origin(parsed.location) || !lexer.expect("{"))
      return false;
    while (!lexer.at("}"))
      if (!parseDeclaration())
        return false;
    return buffers->resolveLaterNames() && lexer.expect("}");
  }

  bool parseDeclaration() {
    if (lexer.at("about"))
      return lexer.expect("about") && lexer.string(kernel->about.emplace_back());
    if (lexer.at("options"))
      return parseOptions();
    if (lexer.at("grid"))
      return parseGrid(lexer, *kernel, *buffers);
    if (lexer.at("size"))
      return parseSizes();
    if (lexer.at("param"))
      return buffers->parseParam();
    if (lexer.at("scratch"))
      return buffers->parseScratch();
    if (lexer.at("view"))
      return buffers->parseView();
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
      return lexer.missing("about, options, grid, size, param, const, global, scratch, view, shared, fragment, let, "
                           "site, role or '}'",
                           {"about", "options", "grid", "size", "param", "const", "global", "scratch", "view", "shared",
                            "fragment", "let", "site", "role"});
    return lexer.expect(word) && buffers->parseBuffer(*space);
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

  template <typename Value> bool parseOptionValue(StringRef name, std::optional<Option<Value>> &slot) {
    if (slot)
      return lexer.error(name.data(), "option '" + name + "' is given twice");
    slot.emplace();
    slot->location.source = SMLoc::getFromPointer(name.data());
    return lexer.expect("=") && parseValue(slot->value, name) && lexer.origin(slot->location);
  }
  template <typename Enum> bool parseValue(Enum &value, StringRef name) {
    return lexer.enumeration(value, kValuesOf<Enum>, "value of '" + name + "'");
  }
  bool parseValue(Count &value, StringRef) { return buffers->parseCount(value); }

  /// size M, N in [1, 4096]
  bool parseSizes() {
    lexer.expect("size");
    do {
      StringRef name;
      if (!lexer.word(name, "a size's name"))
        return false;
      kernel->sizes.push_back(name.str());
      if (Interval range; lexer.accept("in")) {
        if (!buffers->parseInterval(range.low, range.high))
          return false;
        kernel->sizeRanges[name.str()] = range;
      }
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
    if (!lexer.origin(constant.location))
      return false;
    kernel->constants.push_back(std::move(constant));
    return true;
  }

  bool parseLet() {
    Let let;
    StringRef name;
    if (!lexer.expect("let") || !lexer.word(name, "a name"))
      return false;
    let.name = name.str();
    if (!(lexer.at("in")       ? parseRead(let)
          : lexer.at("judges") ? parseJudgement(let)
                               : lexer.expect("=") && lexer.anyExpression(let.value)) ||
        !lexer.note(let.note))
      return false;
    kernel->lets.push_back(std::move(let));
    return true;
  }

  /// judges 8 from 0 as low to high seen low < n whole high < n
  bool parseJudgement(Let &let) {
    TileJudgement &judged = let.judged.emplace();
    let.value = variable(let.name);
    StringRef low, high;
    if (!lexer.expect("judges") || !lexer.anyExpression(judged.tiles) || !lexer.expect("from") ||
        !lexer.anyExpression(judged.first) || !lexer.expect("as") || !lexer.word(low, "a name") ||
        !lexer.expect("to") || !lexer.word(high, "a name") || !lexer.expect("seen") ||
        !lexer.anyExpression(judged.seen) || !lexer.expect("whole") || !lexer.anyExpression(judged.whole))
      return false;
    judged.low = low.str();
    judged.high = high.str();
    return true;
  }

  /// in [0, 4096] = %begin[b]
  bool parseRead(Let &let) {
    GlobalElement &source = let.source.emplace();
    let.value = variable(let.name);
    return lexer.expect("in") && buffers->parseInterval(source.low, source.high) && lexer.expect("=") &&
           buffers->parseGlobalElement(source.buffer, source.at);
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
    return (!lexer.accept("registers") || lexer.number(role.registers)) && parseBody(lexer, *kernel, role.body);
  }

  Lexer lexer;
  Kernel *kernel = nullptr;
  std::optional<BufferParser> buffers; ///< of the kernel
};

} // namespace

std::unique_ptr<Program> ir::parseProgram(unsigned buffer, Diagnostics &diags) {
  LastPass last;
  return parseProgram(buffer, diags, last);
}

std::unique_ptr<Program> ir::parseProgram(unsigned buffer, Diagnostics &diags, LastPass &last) {
  auto program = std::make_unique<Program>();
  const StringRef text = diags.getSources().getMemoryBuffer(buffer)->getBuffer();
  return Parser(text, diags).parseProgram(*program, last) ? std::move(program) : nullptr;
}

// fagen: blocks of a spec: file, target, kernel, problem, schedule, select, require.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Parse/Parser.h"

#include "Hints.h"
#include "ParserImpl.h"
#include "fagen/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/SaveAndRestore.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include <optional>

using namespace llvm;

namespace fagen {

/// `program @name`, with which textual IR begins; nothing in a spec.
static std::optional<SMRange> programAtHead(StringRef text) {
  SourceMgr sources;
  sources.AddNewSourceBuffer(MemoryBuffer::getMemBuffer(text, "", /*RequiresNullTerminator=*/false), SMLoc());
  Diagnostics silent(sources, nulls());
  const Token first = Lexer(text, silent).next();
  const bool isProgram = first.is("program") && text.substr(first.text.end() - text.begin()).ltrim().starts_with("@");
  return isProgram ? std::optional(first.range()) : std::nullopt;
}

ast::File parseSpec(StringRef text, Diagnostics &diags) {
  const std::optional<SMRange> program = programAtHead(text);
  if (!program)
    return Parser(text, diags).parseFile();
  diags.error(*program, "this is a program, no spec: fagen PROGRAM.fair -o DIR compiles it, and fagen-opt checks it");
  ast::File nothing;
  nothing.hasLostTargets = true;
  return nothing;
}

//===-- Tokens and recovery
//----------------------------------------------------------------------------------------===//

void Parser::advance() {
  lastEnd = token.range().End;
  token = ahead;
  ahead = lexer.next();
}

bool Parser::accept(StringRef text) {
  if (!token.is(text))
    return false;
  advance();
  return true;
}

std::string Parser::describeToken() const {
  return token.kind == Token::End ? "the end of the file" : ("'" + token.text + "'").str();
}

bool Parser::fail(const Twine &message) {
  if (token.kind != Token::Reported)
    diags.error(token.range(), message);
  return false;
}

bool Parser::expect(StringRef text, StringRef where, const std::string &hint) {
  return accept(text) || fail("expected '" + text + "' " + where + ", not " + describeToken() + hint);
}

bool Parser::atNewLine() const {
  return StringRef(lastEnd.getPointer(), token.text.begin() - lastEnd.getPointer()).contains('\n');
}

// A `;` that is missing at the end of a line is reported there and taken as written.
bool Parser::expectSemicolon(StringRef where, const std::string &hint) {
  if (accept(";"))
    return true;
  if (!atNewLine() && !token.is("}"))
    return fail("expected ';' " + where + ", not " + describeToken() + hint);
  diags.error(SMRange(lastEnd, lastEnd), "expected ';' " + where + commentHint(),
              SMFixIt(SMRange(lastEnd, lastEnd), ";"));
  return true;
}

bool Parser::expectName(ast::Name &name, StringRef what) {
  if (token.kind != Token::Word)
    return fail("expected " + what + ", not " + describeToken() + emptyHint());
  name = {token.text.str(), token.range()};
  advance();
  return true;
}

bool Parser::enter(unsigned &depth) {
  if (depth >= kMaxDepth)
    return fail("nested more than " + Twine(kMaxDepth) + " deep");
  ++depth;
  return true;
}

void Parser::recover() {
  unsigned depth = 0;
  while (token.kind != Token::End) {
    if (token.is("}") && depth == 0)
      return;
    if (token.is("{"))
      ++depth;
    if (lost && token.kind == Token::Word && ahead.is("="))
      lost->keys.push_back(token.text.str());
    bool closed = token.is("}") && --depth == 0;
    bool ended = (token.is(";") && depth == 0) || closed;
    advance();
    if (ended)
      return;
  }
}

// `schedule name {`, `select {` and the like begin no statement of a block: its `}` is missing.
bool Parser::atBlockAround(StringRef what) const {
  const bool isNamed = token.is("kernel") || token.is("schedule") || token.is("form");
  const bool isInKernel = token.is("problem") || token.is("schedule") || token.is("select") || token.is("require");
  const bool isOfFile = token.is("kernel") || token.is("form");
  return (isOfFile || (isInKernel && what != "kernel" && what != "form")) &&
         (ahead.is("{") || (isNamed && ahead.kind == Token::Word));
}

bool Parser::parseBlock(StringRef what, function_ref<bool()> statement) {
  SMRange open = token.range();
  // Statements that follow at once are those of the block: only its '{' is missing.
  const std::string hint = what != "when"  ? nameHint()
                           : token.is(":") ? "; a schedule's when has a block: { ... }"
                                           : operatorHint();
  const bool isOfBlock = (token.kind == Token::Word && ahead.is("=")) || token.is("when") || token.is("otherwise") ||
                         (what == "kernel" && isPartOfKernel(token));
  if (!expect("{", ("to begin the " + what).str(), hint) && !(atNewLine() && isOfBlock))
    return false;
  while (token.kind != Token::End && !token.is("}")) {
    if (atBlockAround(what)) {
      fail("expected '}' to end the " + what + ", not " + describeToken() +
           (token.is("form") ? "; forms are declared before the kernel" : ""));
      diags.note(open, "to match this '{'");
      isLeftOpen = true;
      if (lost)
        lost->mayBeAny = true; // statements may stand in another block than was meant
      return true;
    }
    const char *before = token.text.begin();
    const size_t lostBefore = lost ? lost->keys.size() : 0;
    const bool isEmpty = token.is(";");
    if (statement())
      continue;
    recover();
    if (token.is(";") && !emptyHint().empty())
      advance(); // of a value in { }, which was reported
    if (lost)
      lost->mayBeAny |= !isEmpty && lost->keys.size() == lostBefore;
    if (token.text.begin() == before && !token.is("}"))
      advance(); // always forward
  }
  if (accept("}"))
    return true;
  isCutShort = true;
  diags.error(token.range(), "expected '}' to end the " + what + ", not the end of the file");
  diags.note(open, "to match this '{'");
  return true; // reported; there is nothing left to skip
}

bool Parser::parseBlock(StringRef what, bool &isDamaged, function_ref<bool()> statement) {
  unsigned before = diags.errorCount();
  bool parsed = parseBlock(what, statement);
  isDamaged = diags.errorCount() != before;
  return parsed;
}

bool Parser::parseBlock(StringRef what, ast::Lost &skipped, function_ref<bool()> statement) {
  SaveAndRestore inThisBlock(lost, &skipped);
  bool parsed = parseBlock(what, statement);
  skipped.mayBeAny |= !parsed || isCutShort;
  return parsed;
}

//===-- File and kernel
//--------------------------------------------------------------------------------------------===//

ast::File Parser::parseFile() {
  ast::File file;
  const bool isMisspelt = isOtherTarget(token) || (token.kind == Token::Word && !token.is("target") &&
                                                   !nearestWord(token.text, {"target"}).empty());
  const bool isOfFile = token.is("target") || token.is("kernel") || token.is("form");
  file.hasLostTargets = isMisspelt || (!isOfFile && !fileHint(token).empty());
  if (token.is("target") && !parseTarget(file)) {
    file.hasLostTargets = true;
    recover();
  }
  while (token.kind != Token::End) {
    const char *before = token.text.begin();
    bool parsed = false;
    if (token.is("kernel"))
      parsed = parseKernel(file);
    else if (token.is("form"))
      parsed = parseForm(file);
    else if (token.is("target") && file.hasLostTargets && file.targets.empty() && file.kernels.empty())
      parsed = parseTarget(file); // only what stands before it is wrong
    else if (token.is("target"))
      parsed = fail("target comes first in the file, and once");
    else if (const std::string hint = fileHint(token); !isLeftOpen || hint.find(" stands in ") == std::string::npos)
      parsed = fail("expected 'target', 'form' or 'kernel', not " + describeToken() + hint + emptyHint());
    if (parsed)
      continue;
    recover();
    if (token.text.begin() == before || token.is("}"))
      advance();
  }
  return file;
}

bool Parser::parseTarget(ast::File &file) {
  advance();
  do {
    ast::Name name;
    if (token.is("["))
      return fail("expected a target (sm_89), not '['; several stand without brackets: target sm_80, sm_89;");
    if (!expectName(name, "a target (sm_89)"))
      return false;
    file.targets.push_back(std::move(name));
  } while (accept(","));
  return expectSemicolon("after the targets", token.kind == Token::Word ? "; several stand with commas between" : "");
}

bool Parser::parseKernel(ast::File &file) {
  advance();
  ast::Kernel &kernel = file.kernels.emplace_back();
  kernel.name.range = token.range();
  kernel.isDamaged = true; // until its block was parsed
  bool parsed = expectName(kernel.name, "the kernel's name") && parseBlock("kernel", kernel.isDamaged, [&] {
                  bool understood = parseKernelPart(kernel);
                  kernel.hasLostBlocks |= !understood;
                  return understood;
                });
  kernel.hasLostBlocks |= isCutShort;
  if (isCutShort && !kernel.schedules.empty())
    kernel.schedules.back().lost.mayBeAny = true; // the '}' that is missing may be one of its own
  return parsed;
}

bool Parser::parseKernelPart(ast::Kernel &kernel) {
  if (token.is("problem"))
    return parseProblem(kernel);
  if (token.is("schedule"))
    return parseSchedule(kernel);
  if (token.is("select"))
    return parseSelect(kernel);
  if (token.is("claim"))
    return parseClaim(kernel);
  if (token.is("require"))
    return parseRequire(kernel);
  return fail("expected 'problem', 'schedule', 'select', 'claim' or 'require', not " + describeToken() +
              kernelHint(token, ahead) + emptyHint());
}

//===-- Problem and schedule
//---------------------------------------------------------------------------------------===//

bool Parser::parseProblem(ast::Kernel &kernel) {
  ast::Problem &problem = kernel.problems.emplace_back();
  problem.range = token.range();
  advance();
  return parseBlock("problem", problem.lost, [&] {
    ast::Setting setting;
    if (token.is("when") && !ahead.is("="))
      return fail("'when' stands in schedules; a problem has axes instead");
    if (!parseSetting(setting))
      return false;
    problem.settings.push_back(std::move(setting));
    return true;
  });
}

bool Parser::parseSchedule(ast::Kernel &kernel) {
  ast::Schedule &schedule = kernel.schedules.emplace_back();
  schedule.range = token.range();
  advance();
  if ((token.kind == Token::Word || token.kind == Token::Reported) && !ahead.is("=")) {
    schedule.name = ast::Name{token.text.str(), token.range()};
    advance();
  }
  return parseBlock("schedule", schedule.lost, [&] { return parseStatement(schedule.body); });
}

bool Parser::parseStatement(std::vector<ast::Statement> &body) {
  if (token.is("when") && !ahead.is("="))
    return parseWhen(body);
  ast::Setting setting;
  if (!parseSetting(setting))
    return false;
  body.push_back({std::move(setting), nullptr});
  return true;
}

bool Parser::parseWhen(std::vector<ast::Statement> &body) {
  auto when = std::make_unique<ast::When>();
  when->range = token.range();
  advance();
  if (!enter(whenDepth))
    return false;
  when->condition = parseExpr();
  bool parsed = when->condition && parseBlock("when", when->lost, [&] { return parseStatement(when->body); });
  --whenDepth;
  if (parsed)
    body.push_back({std::nullopt, std::move(when)});
  return parsed;
}

//===-- Select, claim and require
//-----------------------------------------------------------------------------------------===//

bool Parser::parseSelect(ast::Kernel &kernel) {
  ast::Select &select = kernel.selects.emplace_back();
  select.range = token.range();
  advance();
  return parseBlock("select", select.isDamaged, [&] { return parseSelectLine(select); });
}

bool Parser::parseClaim(ast::Kernel &kernel) {
  ast::Claim claim;
  claim.range = token.range();
  advance();
  if (token.is("{"))
    return fail("expected a condition, not '{'; claims have no block: claim CONDITION;");
  claim.condition = parseExpr();
  if (!claim.condition || !expectSemicolon("after the condition", operatorHint()))
    return false;
  kernel.claims.push_back(std::move(claim));
  return true;
}

/// least joules; before the lines.
bool Parser::parseLeast(ast::Select &select) {
  const SMLoc begin = here();
  advance();
  ast::Name what;
  if (!expectName(what, "'time' or 'joules'") || !expectSemicolon("after " + what.text))
    return false;
  if (select.least || !select.lines.empty()) {
    diags.error(rangeFrom(begin), select.least ? "least is said once" : "least stands before the lines of a select");
    return true;
  }
  select.least = std::move(what);
  return true;
}

bool Parser::parseSelectLine(ast::Select &select) {
  if (token.is("least"))
    return parseLeast(select);
  ast::SelectLine line;
  SMLoc begin = here();
  if (accept("when")) {
    line.condition = parseExpr();
    if (!line.condition)
      return false;
  } else if (!accept("otherwise")) {
    return fail("expected 'when' or 'otherwise', not " + describeToken() +
                (token.is("else") || token.is("default") ? "; the last line is otherwise : NAME;"
                 : token.kind == Token::Word             ? "; a line is when CONDITION : NAME; or otherwise : NAME;"
                                                         : emptyHint()));
  }
  line.range = rangeFrom(begin);
  const bool isArrow = token.is("=") && ahead.is(">");
  const std::string hint = isArrow ? "; a line is when CONDITION : NAME;" : line.condition ? operatorHint() : "";
  if (!expect(":", "before the schedule's name", hint) || !expectName(line.schedule, "a schedule's name") ||
      !expectSemicolon("after the schedule's name"))
    return false;
  select.lines.push_back(std::move(line));
  return true;
}

bool Parser::parseRequire(ast::Kernel &kernel) {
  ast::Require &require = kernel.requires_.emplace_back();
  require.range = token.range();
  advance();
  return parseBlock("require", [&] { return parseGate(require); });
}

bool Parser::parseGate(ast::Require &require) {
  static constexpr StringLiteral kRelations[] = {"==", "!=", "<=", "<", ">=", ">"};
  ast::Gate gate;
  SMLoc begin = here();
  if (token.kind == Token::Integer || token.kind == Token::Decimal)
    return fail("expected a gate's name, not " + describeToken() + "; the gate comes first: registers <= 128");
  if (!expectName(gate.name, "a gate's name"))
    return false;
  for (StringRef relation : kRelations)
    if (gate.relation.empty() && accept(relation))
      gate.relation = relation.str();
  if (gate.relation.empty())
    return fail("expected one of == != < <= > >= after '" + gate.name.text + "', not " + describeToken());
  gate.value = parseExpr();
  if (!gate.value)
    return false;
  gate.range = rangeFrom(begin);
  if (!expectSemicolon("after the gate"))
    return false;
  require.gates.push_back(std::move(gate));
  return true;
}

} // namespace fagen

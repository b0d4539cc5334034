// fagen: unrolls a role's body into timelines.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Analysis/Timeline.h"

#include "ExprCode.h"
#include "fagen/IR/ExprAnalysis.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

#include <cstdint>

using namespace fagen;
using namespace fagen::ir;

Points::Points(const Role &role) { add(role.body, 0, false); }

void Points::add(const Block &block, unsigned loops, bool conditional) {
  for (const std::unique_ptr<Op> &op : block.ops) {
    byOp[op.get()] = points.size();
    points.push_back({&block, op.get(), loops, conditional, ++ops});
    if (opInfo(op->kind).hasBody)
      add(op->body, loops + (op->kind == OpKind::Loop), conditional || op->kind == OpKind::If);
  }
  byBlock[&block] = points.size();
  points.push_back({&block, nullptr, loops, conditional, 0});
}

std::string Points::nameOf(const Op *op) const {
  return opInfo(op->kind).name.str() + "@" + std::to_string(points[before(op)].number);
}

namespace {

/// More values than this that steer loops independently would make too many timelines.
constexpr unsigned kMaxSteering = 3;
/// Steps of the longest runs that are tried; needed only when an expression compares with large literals.
constexpr int64_t kMaxLimit = 64;
/// Events of a timeline meet each other: the sum of their squares is what an analysis takes. Kernels of 8 stages have a
/// hundredth of it.
constexpr uint64_t kMaxWork = uint64_t(1) << 32;

/// In words.
constexpr const char *kTooLong = "there are too many steps of its loops to try them all";

/// What an op's turn depends on.
struct OpCode {
  llvm::SmallVector<ExprCode, 3> positions; ///< of each operand; none: always 0
  ExprCode when, condition, begin, end, step, bytes;
  unsigned variable = 0, carry = 0; ///< of a loop
  bool isAsyncCopy = false, carries = false;
};

class Unroller {
public:
  Unroller(const Kernel &kernel, llvm::ArrayRef<const Role *> roles, llvm::ArrayRef<const Points *> numberings,
           std::string &problem, llvm::function_ref<void(llvm::ArrayRef<Timeline>)> visit)
      : kernel(kernel), roles(roles), numberings(numberings), problem(problem), visit(visit), timelines(roles.size()) {}

  bool run() {
    findSteering();
    encode();
    if (steering.size() > kMaxSteering)
      problem = "more than " + std::to_string(kMaxSteering) + " run-time values steer loops and predicates";
    else if (limit > kMaxLimit)
      problem = "a loop or predicate compares with a literal above " + std::to_string(kMaxLimit);
    else if (turnsLet)
      enumerateTurns();
    else
      enumerate(0);
    return problem.empty();
  }

private:
  /// The lets whose values must be chosen: those that control flow, positions or predicates name and that constants
  /// do not determine.
  void findSteering() {
    for (const Constant &constant : kernel.constants)
      valueOf(constant.name) = constant.value;
    int64_t stages = 1;
    for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
      stages = std::max<int64_t>(stages, buffer->stages);
    int64_t largest = 0;                           // literal: beyond it a predicate's value may change
    llvm::SetVector<llvm::StringRef> names, turns; // turns: of the loop that carries a value
    auto add = [&](const Expr &expr) {
      if (!expr)
        return;
      expr.forEachVariable([&](llvm::StringRef name) { names.insert(name); });
      largest = std::max(largest, largestLiteral(expr));
    };
    for (const Role *role : roles)
      walk(role->body, [&](const Op &op) {
        for (const char *name : {"begin", "end", "when", "condition", "step"})
          if (op.has(name))
            add(op.expr(name));
        if (op.has("carry"))
          op.expr("end").forEachVariable([&](llvm::StringRef name) { turns.insert(name); });
        if (op.has("bytes"))
          op.expr("bytes").forEachVariable([&](llvm::StringRef name) { names.insert(name); });
        for (const Operand &operand : op.operands)
          add(operand.position);
      });
    limit = 4 * stages + 2 + (largest > stages ? std::min(largest, kMaxLimit) : 0);
    for (const Let &let : kernel.lets) {
      if (std::optional<int64_t> value = ExprCode(let.value, values).evaluate(values))
        valueOf(let.name) = *value;
      else if (turns.contains(let.name))
        turnsLet = &let;
      else if (names.contains(let.name))
        steering.push_back(&let);
    }
    turnLimit = stages;
    for (const Let *let : steering)
      steeringNumbers.push_back(values.numberOf(let->name));
    findDifferences();
  }

  std::optional<int64_t> &valueOf(llvm::StringRef name) { return values[values.numberOf(name)]; }

  void encode() {
    for (const Points *points : numberings) {
      codes.emplace_back(points->size());
      for (unsigned point = 0; point < points->size(); ++point)
        if (const Op *op = (*points)[point].op)
          encode(*op, codes.back()[point]);
    }
  }

  void encode(const Op &op, OpCode &code) {
    auto encoded = [&](llvm::StringRef name) { return op.has(name) ? ExprCode(op.expr(name), values) : ExprCode(); };
    for (const Operand &operand : op.operands)
      code.positions.emplace_back(operand.position, values);
    code.when = encoded("when");
    code.condition = encoded("condition");
    code.bytes = encoded("bytes");
    hasAsyncCopies |= code.isAsyncCopy = isAsyncCopy(op);
    if (op.kind != OpKind::Loop)
      return;
    code.begin = encoded("begin");
    code.end = encoded("end");
    code.variable = values.numberOf(op.text("variable"));
    if (code.carries = op.has("carry"); code.carries) {
      code.carry = values.numberOf(op.text("carry"));
      code.step = encoded("step");
    }
  }

  /// What the lets' own expressions say of two of them: the full tiles are never more than all tiles, and only so many
  /// less as a tile of rows crosses. A bound is kept only if it lets both be equal: then fewer steps keep within it.
  void findDifferences() {
    std::vector<Expr> exact;
    for (const Let *let : steering)
      exact.push_back(expand(let->value));
    differences.assign(steering.size(), {});
    for (unsigned i = 0; i < steering.size(); ++i)
      for (unsigned j = 0; j < i; ++j) {
        const std::optional<Interval> apart = difference(exact[i], exact[j]);
        const bool isUsable = apart && apart->low <= 0 && apart->high >= 0;
        differences[i].push_back(isUsable ? apart : std::nullopt);
      }
  }

  /// With the constants' values, and lets in place of their names.
  Expr expand(Expr expr) const {
    for (const Let &let : llvm::reverse(kernel.lets))
      expr = expr.substitute(let.name, let.value);
    for (const Constant &constant : kernel.constants)
      expr = expr.substitute(constant.name, ir::constant(constant.value));
    return expr;
  }

  /// Whether the let's value goes with those chosen before it.
  bool isPossible(unsigned let, int64_t value) const {
    for (unsigned other = 0; other < let; ++other)
      if (const std::optional<Interval> &apart = differences[let][other]) {
        const int64_t difference = value - *values[steeringNumbers[other]];
        if (difference < apart->low || difference > apart->high)
          return false;
      }
    return true;
  }

  static int64_t largestLiteral(const Expr &expr) {
    if (expr.kind() == ExprKind::Variable)
      return 0;
    return expr.kind() == ExprKind::Constant ? std::max(expr.value(), -std::max(expr.value(), -INT64_MAX))
                                             : std::max(largestLiteral(expr.lhs()), largestLiteral(expr.rhs()));
  }

  std::optional<int64_t> evaluate(const ExprCode &code) const { return code.evaluate(values); }

  void enumerate(unsigned next) {
    if (!problem.empty())
      return;
    if (next == steering.size())
      return unroll();
    for (int64_t value = 0; value <= limit; ++value) {
      if (!isPossible(next, value))
        continue;
      values[steeringNumbers[next]] = value;
      enumerate(next + 1);
    }
  }

  /// One turn of every length, and three turns of all short lengths (see the head of Timeline.h).
  void enumerateTurns() {
    for (const auto &[count, most] : {std::pair<int64_t, int64_t>{0, 0}, {1, limit}, {3, turnLimit}}) {
      valueOf(turnsLet->name) = count;
      turnValues.clear();
      enumerateTurn(count, most, 0);
    }
  }

  void enumerateTurn(int64_t count, int64_t most, unsigned next) {
    if (!problem.empty())
      return;
    if (int64_t(turnValues.size()) == count)
      return unroll();
    if (next == steering.size()) {
      turnValues.emplace_back();
      for (unsigned number : steeringNumbers)
        turnValues.back().push_back(*values[number]);
      enumerateTurn(count, most, 0);
      turnValues.pop_back();
      return;
    }
    for (int64_t value = 0; value <= most; ++value)
      if (values[steeringNumbers[next]] = value; isPossible(next, value))
        enumerateTurn(count, most, next + 1);
  }

  /// The lets' values of a turn of the loop that carries a value.
  void beginTurn(size_t turn) {
    if (turn < turnValues.size())
      for (size_t i = 0; i != steering.size(); ++i)
        values[steeringNumbers[i]] = turnValues[turn][i];
  }

  std::string stepsText() const {
    std::string text;
    for (size_t i = 0; i != steering.size(); ++i) {
      text += (text.empty() ? "" : ", ") + steering[i]->name + " = ";
      if (!turnsLet)
        text += std::to_string(*values[steeringNumbers[i]]);
      for (const std::vector<int64_t> &turn : turnValues)
        text += (&turn == turnValues.data() ? "" : " ") + std::to_string(turn[i]);
    }
    return text;
  }

  void unroll() {
    const std::string steps = stepsText();
    for (unsigned r = 0; r < roles.size() && problem.empty(); ++r) {
      role = r;
      timeline().events.clear();
      timeline().turnBegins.clear();
      timeline().steps = steps;
      groups = 0;
      open.clear();
      unroll(roles[r]->body);
      work += uint64_t(timeline().events.size()) * timeline().events.size();
    }
    for (Timeline &timeline : timelines)
      timeline.sharedTurns = sharedTurns();
    lastTurnValues = turnValues;
    if (problem.empty())
      visit(timelines);
    if (problem.empty() && work > kMaxWork)
      problem = kTooLong;
  }

  /// Turns begin alike in two runs if those before them do, and if there are as many. What a wait completes is noted at
  /// the copy, maybe turns earlier: with such copies nothing is shared.
  unsigned sharedTurns() const {
    const bool areKnown = llvm::all_of(
        timelines, [&](const Timeline &timeline) { return timeline.turnBegins.size() == turnValues.size(); });
    if (!areKnown || hasAsyncCopies || lastTurnValues.size() != turnValues.size())
      return 0;
    const auto [apart, other] =
        std::mismatch(turnValues.begin(), turnValues.end(), lastTurnValues.begin(), lastTurnValues.end());
    return apart - turnValues.begin() + 1;
  }

  void unroll(const Block &block) {
    for (const std::unique_ptr<Op> &op : block.ops) {
      if (!problem.empty())
        return;
      const unsigned point = points().before(op.get());
      append(point, op.get());
      step(*op, codes[role][point]);
    }
    append(points().endOf(&block), nullptr);
  }

  void step(const Op &op, const OpCode &code) {
    switch (op.kind) {
    case OpKind::Loop:
      return unrollLoop(op, code);
    case OpKind::If: // what constants and lets do not decide may happen; verify-barriers lets no barrier depend on it
      if (evaluate(code.condition).value_or(1))
        unroll(op.body);
      return;
    case OpKind::CopyIssue:
      return issue(code);
    case OpKind::CopyCommit:
      return commit();
    case OpKind::CopyWait:
      return wait(op);
    default:
      return;
    }
  }

  void append(unsigned point, const Op *op) {
    std::vector<Event> &events = timeline().events;
    Event &event = events.emplace_back();
    event.point = point;
    event.op = op;
    event.group = groups;
    if (op)
      place(event, codes[role][point]);
    if (uint64_t(events.size()) * events.size() > kMaxWork)
      problem = kTooLong;
  }

  void place(Event &event, const OpCode &code) {
    for (unsigned i = 0; i < code.positions.size(); ++i) {
      const std::optional<int64_t> position = code.positions[i] ? evaluate(code.positions[i]) : 0;
      if (!position)
        problem = "position " + event.op->operands[i].position.str() + " of " + points().nameOf(event.op) +
                  " is not determined by lets, loop variables and constants";
      event.positions.push_back(position.value_or(0));
    }
    if (!code.bytes)
      return;
    const std::optional<int64_t> bytes = evaluate(code.bytes);
    if (!bytes)
      problem =
          "the bytes of " + points().nameOf(event.op) + " are not determined by lets, loop variables and constants";
    event.bytes = bytes.value_or(0);
  }

  void unrollLoop(const Op &loop, const OpCode &code) {
    const std::optional<int64_t> begin = evaluate(code.begin), end = evaluate(code.end);
    if (!begin || !end) {
      problem = "the bounds of " + points().nameOf(&loop) + " are not determined by lets, loop variables and constants";
      return;
    }
    if (code.carries)
      values[code.carry] = 0;
    for (int64_t value = *begin; value < *end && problem.empty(); ++value) {
      values[code.variable] = value;
      if (code.carries) {
        beginTurn(value - *begin);
        timeline().turnBegins.push_back(timeline().events.size());
      }
      unroll(loop.body);
      if (code.carries)
        *values[code.carry] += evaluate(code.step).value_or(0);
    }
    values[code.variable].reset();
    if (code.carries)
      values[code.carry].reset();
  }

  void issue(const OpCode &code) {
    Event &event = timeline().events.back();
    event.active = !code.when || evaluate(code.when).value_or(1) != 0;
    if (!code.isAsyncCopy)
      return;
    event.doneAt = event.committedAt = Event::kNever;
    if (event.active)
      open.push_back(timeline().events.size() - 1);
  }

  void commit() {
    const unsigned now = timeline().events.size() - 1;
    for (unsigned copy : open)
      if (Event &event = timeline().events[copy]; event.committedAt == Event::kNever)
        event.committedAt = now;
    ++groups;
  }

  void wait(const Op &op) {
    const int64_t pending = op.integer("pending");
    if (pending < 0)
      return;
    const unsigned now = timeline().events.size() - 1;
    llvm::erase_if(open, [&](unsigned copy) {
      Event &event = timeline().events[copy];
      const bool isDone = event.committedAt != Event::kNever && event.group + pending < groups;
      if (isDone)
        event.doneAt = now;
      return isDone;
    });
  }

  const Points &points() const { return *numberings[role]; }
  Timeline &timeline() { return timelines[role]; }

  const Kernel &kernel;
  const llvm::ArrayRef<const Role *> roles;
  const llvm::ArrayRef<const Points *> numberings; ///< of each role
  std::string &problem;
  llvm::function_ref<void(llvm::ArrayRef<Timeline>)> visit;

  ExprValues values;
  std::vector<std::vector<OpCode>> codes; ///< by role and point
  std::vector<const Let *> steering;
  std::vector<unsigned> steeringNumbers;                         ///< of their values
  std::vector<std::vector<std::optional<Interval>>> differences; ///< of each let to those before it, where known
  int64_t limit = 0;
  const Let *turnsLet = nullptr; ///< the turns of the loop that carries a value
  int64_t turnLimit = 0;
  std::vector<std::vector<int64_t>> turnValues; ///< of the steering lets, by turn
  std::vector<std::vector<int64_t>> lastTurnValues;
  bool hasAsyncCopies = false;
  std::vector<Timeline> timelines; ///< of each role
  unsigned role = 0;               ///< the one that is being unrolled
  uint64_t work = 0;
  unsigned groups = 0;
  std::vector<unsigned> open; ///< events of copies that no wait has completed
};

} // namespace

bool fagen::forEachTimeline(const Kernel &kernel, const Role &role, const Points &points, std::string &problem,
                            llvm::function_ref<void(const Timeline &)> visit) {
  return forEachRun(kernel, {&role}, {&points}, problem,
                    [&](llvm::ArrayRef<Timeline> timelines) { visit(timelines.front()); });
}

bool fagen::forEachRun(const Kernel &kernel, llvm::ArrayRef<const Role *> roles, llvm::ArrayRef<const Points *> points,
                       std::string &problem, llvm::function_ref<void(llvm::ArrayRef<Timeline>)> visit) {
  problem.clear();
  return Unroller(kernel, roles, points, problem, visit).run();
}

// fagen: unrolls a role's body into timelines.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Analysis/Timeline.h"
#include "fagen/IR/Patterns.h"
#include "fagen/IR/Queries.h"

#include "ExprCode.h"
#include "fagen/IR/ExprAnalysis.h"
#include "fagen/IR/Steering.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cstdint>
#include <map>

using namespace fagen;
using namespace fagen::ir;

Points::Points(const Role &role) { add(role.body, 0, false); }

void Points::add(const Block &block, unsigned loops, bool conditional) {
  for (const std::unique_ptr<Op> &op : block.ops) {
    byOp[op.get()] = points.size();
    points.push_back({&block, op.get(), loops, conditional, ++ops});
    if (opInfo(op->kind).hasBody)
      add(op->body, loops + (op->kind == OpKind::Loop),
          conditional || op->kind == OpKind::If || op->kind == OpKind::Vote);
  }
  byBlock[&block] = points.size();
  points.push_back({&block, nullptr, loops, conditional, 0});
}

std::string Points::nameOf(const Op *op) const {
  return titleOf(*op).str() + "@" + std::to_string(points[before(op)].number);
}

static size_t hashOf(const Timeline &timeline) {
  uint64_t hash = (uint64_t(timeline.firstWarp) << 32) + timeline.length;
  auto add = [&](uint64_t value) { // llvm::hash_combine takes longer for one number than for many
    hash = (hash ^ value) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  };
  for (const Event &event : timeline.events) {
    add(event.point);
    for (const int64_t position : event.positions)
      add(uint64_t(position));
  }
  return hash;
}

const Timeline *TimelinePool::keep(Timeline &timeline) {
  std::vector<std::unique_ptr<const Timeline>> &alike = byHash[hashOf(timeline)];
  for (const std::unique_ptr<const Timeline> &other : alike)
    if (other->firstWarp == timeline.firstWarp && other->length == timeline.length &&
        other->turnBegins == timeline.turnBegins && other->events == timeline.events)
      return other.get();
  auto kept = std::make_unique<Timeline>(std::move(timeline));
  timeline = Timeline();
  timeline.role = kept->role;
  timeline.firstWarp = kept->firstWarp;
  timeline.warps = kept->warps;
  timeline.events.reserve(kept->events.size());
  return alike.emplace_back(std::move(kept)).get();
}

namespace {

/// Steps of the longest runs that are tried; needed only when an expression compares with large literals.
constexpr int64_t kMaxLimit = 64;
/// Events of a timeline meet each other: the sum of their squares is what an analysis takes. Kernels of 8 stages have a
/// hundredth of it, those of three warp groups that skip tiles of 4 stages a half.
constexpr uint64_t kMaxWork = uint64_t(1) << 33;

/// What an op's turn depends on.
struct OpCode {
  llvm::SmallVector<ExprCode, 3> positions; ///< of each operand; none: always 0
  ExprCode when, condition, begin, end, step, bytes;
  unsigned variable = 0, carry = 0; ///< of a loop
  bool isAsyncCopy = false, carries = false;
  bool isWanted = true;   ///< its event is kept
  bool isLookedAt = true; ///< it is wanted, or has values that must be there
};

class Unroller {
public:
  /// Without a pool all events are kept, of one run at a time.
  Unroller(const Kernel &kernel, llvm::ArrayRef<const Role *> roles, llvm::ArrayRef<const Points *> numberings,
           llvm::function_ref<bool(unsigned role, unsigned point)> isWanted, TimelinePool *pool, std::string &problem,
           llvm::function_ref<void(const Run &)> visit)
      : kernel(kernel), roles(roles), numberings(numberings), isWanted(isWanted), pool(pool), problem(problem),
        visit(visit) {}

  bool run() {
    const unsigned lets = findSteering();
    encode();
    if (lets > kMaxSteering)
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
  /// A let whose value must be chosen, for one group of warps if it names `group_row`.
  struct Steering {
    const Let *let;
    std::optional<unsigned> group;
    unsigned number; ///< of its value
  };

  /// Prepares the choice of the values of the lets that steer. Gives how many lets there are.
  unsigned findSteering() {
    for (const Constant &constant : kernel.constants)
      valueOf(constant.name) = constant.value;
    int64_t stages = 1;
    for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
      stages = std::max<int64_t>(stages, buffer->stages);
    int64_t largest = 0; // literal: beyond it a predicate's value may change
    for (const Role *role : roles)
      walk(role->body, [&](const Op &op) {
        forEachSteering(op, [&](const Expr &expr) { largest = std::max(largest, largestLiteral(expr)); });
      });
    limit = 4 * stages + 2 + (largest > stages ? std::min(largest, kMaxLimit) : 0);
    for (const Let &let : kernel.lets)
      if (!isOfIntegers(let.value)) // a choice, a real number: none that constants determine
        continue;
      else if (std::optional<int64_t> value = ExprCode(let.value, values).evaluate(values))
        valueOf(let.name) = *value;
    const auto [lets, turns] = steeringLets(kernel, roles);
    turnsLet = turns;
    turnLimit = stages;
    const llvm::StringSet<> ofGroups = namesOfGroups(kernel);
    addTimelines(ofGroups);
    for (const Let *let : lets)
      if (!ofGroups.contains(let->name))
        steering.push_back({let, std::nullopt, values.numberOf(let->name)});
    for (unsigned group = 0; group < groups; ++group)
      for (const Let *let : lets)
        if (ofGroups.contains(let->name))
          steering.push_back({let, group, values.numberOf(let->name)});
    chosen.assign(steering.size(), 0);
    for (const Timeline &timeline : timelines)
      own.push_back(steeringOf(timeline));
    findDifferences();
    return lets.size();
  }

  /// One for each role, or for each group of its warps where it uses values that groups differ in.
  void addTimelines(const llvm::StringSet<> &ofGroups) {
    for (unsigned role = 0; role < roles.size(); ++role) {
      const unsigned all = roles[role]->warps;
      const bool isOfGroups = usesAny(*roles[role], ofGroups);
      const unsigned warps = isOfGroups ? std::min(kGroupWarps, all) : all;
      for (unsigned first = 0; first < all; first += warps) {
        Timeline timeline;
        timeline.role = role;
        timeline.firstWarp = roles[role]->firstWarp + first;
        timeline.warps = std::min(warps, all - first);
        timelines.push_back(std::move(timeline));
      }
      groups = std::max(groups, isOfGroups ? unsigned(llvm::divideCeil(all, warps)) : 0);
    }
  }

  /// What the timeline's role names, of the timeline's group where groups differ.
  llvm::SmallVector<unsigned, 8> steeringOf(const Timeline &timeline) const {
    llvm::SmallVector<unsigned, 8> found;
    const Role &role = *roles[timeline.role];
    const unsigned group = (timeline.firstWarp - role.firstWarp) / kGroupWarps;
    for (unsigned i = 0; i < steering.size(); ++i) {
      llvm::StringSet<> name;
      name.insert(steering[i].let->name);
      if (steering[i].group.value_or(group) == group && usesAny(role, name))
        found.push_back(i);
    }
    return found;
  }

  std::optional<int64_t> &valueOf(llvm::StringRef name) { return values[values.numberOf(name)]; }

  void encode() {
    for (const Points *points : numberings) {
      const unsigned number = codes.size();
      codes.emplace_back(points->size());
      for (unsigned point = 0; point < points->size(); ++point) {
        const Op *op = (*points)[point].op;
        if (op)
          encode(*op, codes.back()[point]);
        const bool isCopy = op && op->kind == OpKind::CopyIssue;
        OpCode &code = codes.back()[point];
        code.isWanted = !pool || isCopy || isWanted(number, point);
        code.isLookedAt = code.isWanted || code.bytes ||
                          llvm::any_of(code.positions, [](const ExprCode &position) { return bool(position); });
      }
    }
  }

  void encode(const Op &op, OpCode &code) {
    auto encoded = [&](Attr attr) { return op.has(attr) ? ExprCode(op.expr(attr), values) : ExprCode(); };
    for (const Operand &operand : op.operands)
      code.positions.emplace_back(operand.position, values);
    code.when = encoded(Attr::When);
    code.condition = encoded(Attr::Condition);
    code.bytes = encoded(Attr::Bytes);
    code.isAsyncCopy = isThreadAsyncCopy(op);
    if (op.kind != OpKind::Loop)
      return;
    code.begin = encoded(Attr::Begin);
    code.end = encoded(Attr::End);
    code.variable = values.numberOf(op.text(Attr::Variable));
    if (code.carries = op.has(Attr::Carry); code.carries) {
      code.carry = values.numberOf(op.text(Attr::Carry));
      code.step = encoded(Attr::Step);
    }
  }

  /// What the lets' own expressions say of two of them: the full tiles are never more than all tiles, and only so many
  /// less as a tile of rows crosses. A bound is kept only if it lets both be equal: then fewer steps keep within it.
  void findDifferences() {
    std::vector<Expr> exact;
    for (const auto &[let, group, number] : steering)
      exact.push_back(atGroup(kernel, expand(kernel, let->value), group.value_or(0)));
    differences.assign(steering.size(), {});
    for (unsigned i = 0; i < steering.size(); ++i)
      for (unsigned j = 0; j < i; ++j) {
        const std::optional<Interval> apart = difference(exact[i], exact[j]);
        const bool isUsable = apart && apart->low <= 0 && apart->high >= 0;
        differences[i].push_back(isUsable ? apart : std::nullopt);
      }
  }

  /// Whether the let's value goes with those chosen before it.
  bool isPossible(unsigned let, int64_t value) const {
    for (unsigned other = 0; other < let; ++other)
      if (const std::optional<Interval> &apart = differences[let][other]) {
        const int64_t difference = value - chosen[other];
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
      chosen[next] = value;
      enumerate(next + 1);
    }
  }

  /// See the head of Timeline.h.
  void enumerateTurns() {
    enumerateTurns({});
    enumerateTurns({limit});
    enumerateTurns({turnLimit, turnLimit});
    for (int64_t between = 0; between < turnLimit; ++between)
      enumerateTurns({turnLimit - between, between, turnLimit - between});
  }

  /// Turns of all lengths up to these.
  void enumerateTurns(llvm::ArrayRef<int64_t> most) {
    valueOf(turnsLet->name) = most.size();
    enumerateTurn(most, 0);
  }

  void enumerateTurn(llvm::ArrayRef<int64_t> most, unsigned next) {
    if (!problem.empty())
      return;
    if (turnValues.size() == most.size())
      return unroll();
    if (next == steering.size()) {
      const bool isBetween = most.size() == 3 && turnValues.size() == 1;
      if (isBetween && llvm::all_of(chosen, [&](int64_t value) { return value < most[1]; }))
        return; // tried between longer turns
      turnValues.push_back(chosen);
      enumerateTurn(most, 0);
      chosen = turnValues.pop_back_val(); // which later turns have used
      return;
    }
    for (int64_t value = 0; value <= most[turnValues.size()]; ++value)
      if (chosen[next] = value; isPossible(next, value))
        enumerateTurn(most, next + 1);
  }

  /// The lets' values of a turn of the loop that carries a value.
  void beginTurn(size_t turn) {
    if (turn < turnValues.size())
      assign(turnValues[turn]);
  }

  /// For the warps that are being unrolled.
  void assign(llvm::ArrayRef<int64_t> choice) {
    for (unsigned i : own[current])
      values[steering[i].number] = choice[i];
  }

  std::string stepsText() const {
    std::string text;
    for (size_t i = 0; i != steering.size(); ++i) {
      text += (text.empty() ? "" : ", ") + steering[i].let->name;
      text += (steering[i].group ? " of group " + std::to_string(*steering[i].group) : "") + " = ";
      if (!turnsLet)
        text += std::to_string(chosen[i]);
      for (const std::vector<int64_t> &turn : turnValues)
        text += (&turn == turnValues.data() ? "" : " ") + std::to_string(turn[i]);
    }
    return text;
  }

  void unroll() {
    llvm::SmallVector<const Timeline *, 8> run;
    for (current = 0; current < timelines.size() && problem.empty(); ++current) {
      run.push_back(&unrolled());
      work += uint64_t(run.back()->length) * run.back()->length;
    }
    if (problem.empty())
      visit({run, [this] { return stepsText(); }});
    if (problem.empty() && work > kMaxWork)
      problem = kTooManySteps;
  }

  /// The current timeline. Most runs have some of them in common.
  const Timeline &unrolled() {
    if (!pool) {
      unrollNow();
      return timeline();
    }
    const Timeline *&kept = known[{current, valuesOfCurrent()}];
    if (!kept) {
      unrollNow();
      kept = pool->keep(timeline());
    }
    return *kept;
  }

  void unrollNow() {
    role = timeline().role;
    timeline().events.clear();
    timeline().turnBegins.clear();
    timeline().length = 0;
    if (!pool) // else many runs share it
      timeline().steps = stepsText();
    closed = 0;
    open.clear();
    for (const Steering &steered : steering)
      values[steered.number].reset();
    if (!turnsLet)
      assign(chosen);
    else
      beginTurn(0); // what stands before the loop, if it names such lets
    unroll(roles[role]->body, 0);
  }

  using OwnValues = llvm::SmallVector<int64_t, 12>;
  /// All that tells the current timeline from the same warps' timelines in other runs: how many turns there are, and
  /// the values that steer it in each.
  OwnValues valuesOfCurrent() const {
    OwnValues found{int64_t(turnValues.size())};
    auto add = [&](llvm::ArrayRef<int64_t> choice) {
      for (unsigned i : own[current])
        found.push_back(choice[i]);
    };
    if (!turnsLet)
      add(chosen);
    llvm::for_each(turnValues, add);
    return found;
  }

  /// From its first place on.
  void unroll(const Block &block, unsigned point) {
    for (const std::unique_ptr<Op> &op : block.ops) {
      if (!problem.empty())
        return;
      append(point, op.get());
      step(*op, point);
      point = opInfo(op->kind).hasBody ? points().endOf(&op->body) + 1 : point + 1;
    }
    append(point, nullptr);
  }

  void step(const Op &op, unsigned point) {
    const OpCode &code = codes[role][point];
    switch (op.kind) {
    case OpKind::Loop:
      return unrollLoop(op, code, point + 1);
    case OpKind::If: // what constants and lets do not decide may happen; verify-barriers lets no barrier depend on it
      if (evaluate(code.condition).value_or(1))
        unroll(op.body, point + 1);
      return;
    case OpKind::Vote: // what warps decide for themselves may happen
      return unroll(op.body, point + 1);
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
    const OpCode &code = codes[role][point];
    std::vector<Event> &events = timeline().events;
    now = events.size();
    if (code.isLookedAt) {
      Event &event = events.emplace_back();
      event.point = point;
      event.op = op;
      event.group = closed;
      place(event, code);
    }
    if (code.isLookedAt && !code.isWanted)
      events.pop_back();
    ++timeline().length;
    if (uint64_t(timeline().length) * timeline().length > kMaxWork)
      problem = kTooManySteps;
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

  void unrollLoop(const Op &loop, const OpCode &code, unsigned body) {
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
      unroll(loop.body, body);
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
    if (!event.active && pool)
      return timeline().events.pop_back();
    if (!code.isAsyncCopy)
      return;
    event.doneAt = event.committedAt = Event::kNever;
    if (event.active)
      open.push_back(now);
  }

  void commit() {
    for (unsigned copy : open)
      if (Event &event = timeline().events[copy]; event.committedAt == Event::kNever)
        event.committedAt = now;
    ++closed;
  }

  void wait(const Op &op) {
    const int64_t pending = op.integer(Attr::Pending);
    if (pending < 0)
      return;
    llvm::erase_if(open, [&](unsigned copy) {
      Event &event = timeline().events[copy];
      const bool isDone = event.committedAt != Event::kNever && event.group + pending < closed;
      if (isDone)
        event.doneAt = now;
      return isDone;
    });
  }

  const Points &points() const { return *numberings[role]; }
  Timeline &timeline() { return timelines[current]; }

  const Kernel &kernel;
  const llvm::ArrayRef<const Role *> roles;
  const llvm::ArrayRef<const Points *> numberings; ///< of each role
  const llvm::function_ref<bool(unsigned role, unsigned point)> isWanted;
  TimelinePool *const pool;
  std::string &problem;
  llvm::function_ref<void(const Run &)> visit;

  ExprValues values;
  std::vector<std::vector<OpCode>> codes; ///< by role and point
  std::vector<Steering> steering;
  std::vector<int64_t> chosen;                                   ///< the value of each
  std::vector<llvm::SmallVector<unsigned, 8>> own;               ///< by timeline: what steers it
  std::vector<std::vector<std::optional<Interval>>> differences; ///< of each let to those before it, where known
  int64_t limit = 0;
  const Let *turnsLet = nullptr; ///< the turns of the loop that carries a value
  int64_t turnLimit = 0;
  llvm::SmallVector<std::vector<int64_t>, 3> turnValues; ///< of the steering lets, by turn
  std::vector<Timeline> timelines;
  std::map<std::pair<unsigned, OwnValues>, const Timeline *> known; ///< by number and own values
  unsigned current = 0, role = 0;                                   ///< what is being unrolled
  unsigned now = 0;    ///< the event of the op that is being unrolled, or the one behind it
  unsigned groups = 0; ///< of warps, that have values of their own
  uint64_t work = 0;
  unsigned closed = 0;        ///< groups of copies
  std::vector<unsigned> open; ///< events of copies that no wait has completed
};

} // namespace

bool fagen::forEachTimeline(const Kernel &kernel, const Role &role, const Points &points, std::string &problem,
                            llvm::function_ref<void(const Timeline &)> visit) {
  problem.clear();
  auto visitAll = [&](const Run &run) {
    for (const Timeline *timeline : run.timelines)
      visit(*timeline);
  };
  return Unroller(kernel, {&role}, {&points}, nullptr, nullptr, problem, visitAll).run();
}

bool fagen::forEachRun(const Kernel &kernel, llvm::ArrayRef<const Role *> roles, llvm::ArrayRef<const Points *> points,
                       llvm::function_ref<bool(unsigned role, unsigned point)> isWanted, TimelinePool &pool,
                       std::string &problem, llvm::function_ref<void(const Run &)> visit) {
  problem.clear();
  return Unroller(kernel, roles, points, isWanted, &pool, problem, visit).run();
}

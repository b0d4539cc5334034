// fagen: unrolls a role's body into timelines.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Analysis/Timeline.h"
#include "fagen/IR/Patterns.h"
#include "fagen/IR/Queries.h"

#include "ExprCode.h"
#include "SteeringChoices.h"
#include "fagen/IR/Steering.h"
#include "fagen/Support/HashOfList.h"

#include "llvm/ADT/STLExtras.h"

#include <cstdint>
#include <unordered_set>

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

unsigned TimelinePool::numberOf(unsigned role, const Event &event) {
  llvm::SmallVector<unsigned, 1> &alike =
      eventsByHash[llvm::hash_combine(role, event.point, event.mixed(), event.doneAt, event.committedAt)];
  for (const unsigned number : alike)
    if (roles[number] == role && events[number] == event)
      return number;
  alike.push_back(unsigned(events.size()));
  events.push_back(event);
  roles.push_back(role);
  return alike.back();
}

const Timeline *TimelinePool::keep(const Timeline &timeline) {
  llvm::SmallVector<std::unique_ptr<const Timeline>, 1> &alike = byHash[HashOfList()(timeline.numbers)];
  for (const std::unique_ptr<const Timeline> &other : alike)
    if (other->role == timeline.role && other->length == timeline.length && other->turnBegins == timeline.turnBegins &&
        other->numbers == timeline.numbers)
      return other.get();
  return alike.emplace_back(std::make_unique<Timeline>(timeline)).get(); // without room to grow
}

const Timeline *TimelinePool::of(const Timeline &warps, const Timeline &kept) {
  if (kept.firstWarp == warps.firstWarp)
    return &kept;
  std::unique_ptr<Timeline> &twin = twins[{&kept, warps.firstWarp}];
  if (!twin) {
    twin = std::make_unique<Timeline>(kept);
    twin->firstWarp = warps.firstWarp;
    twin->warps = warps.warps;
  }
  return twin.get();
}

namespace {

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
  bool isOfCourse = false;
  bool suffices = false, isNeedless = false; ///< of the event: as RunVisitor says
  llvm::SmallVector<unsigned, 1> slotted;    ///< on a course: the operands that are fragments with slots
};

class Unroller {
public:
  /// Without a pool all events are kept, of one run at a time.
  Unroller(const Kernel &kernel, llvm::ArrayRef<const Role *> roles, llvm::ArrayRef<const Points *> numberings,
           TimelinePool *pool, std::string &problem, const RunVisitor &visitor)
      : kernel(kernel), roles(roles), numberings(numberings), pool(pool), problem(problem), visitor(visitor),
        choices(kernel, roles, timelines, values) {}

  /// Whose ops are visited, too.
  Unroller(const Kernel &kernel, llvm::ArrayRef<const Role *> roles, llvm::ArrayRef<const Points *> numberings,
           Extent extent, std::string &problem, const RunVisitor &visitor, const FullRunVisitor &ops)
      : kernel(kernel), roles(roles), numberings(numberings), pool(nullptr), problem(problem), visitor(visitor),
        ops(&ops), choices(kernel, roles, timelines, values, extent) {}

  bool run() {
    encode();
    if (ops)
      ops->prepare(values);
    if (choices.lets() > kMaxSteering)
      problem = "more than " + std::to_string(kMaxSteering) + " run-time values steer loops and predicates";
    else if (choices.largest() > SteeringChoices::kMostSteps)
      problem = "'" + choices.withLargestLiteral().str() +
                "' steers a role by a number that is too large to be tried: " + "analyses try runs of up to " +
                std::to_string(SteeringChoices::kMostSteps) +
                " steps; let the number stand in a let, as in `let beyond = n - 1000` and `beyond > 0`";
    else
      choices.forEach([this] {
        unroll();
        return problem.empty();
      });
    return problem.empty();
  }

private:
  void encode() {
    courses.resize(roles.size());
    for (const Points *points : numberings) {
      const unsigned number = codes.size();
      codes.emplace_back(points->size());
      hasGroups.push_back(false);
      for (unsigned point = 0; point < points->size(); ++point) {
        const Op *op = (*points)[point].op;
        if (op)
          encode(*op, codes.back()[point]);
        const bool isCopy = op && op->kind == OpKind::CopyIssue;
        OpCode &code = codes.back()[point];
        if (code.isAsyncCopy || (op && op->kind == OpKind::CopyCommit))
          hasGroups.back() = true;
        code.isWanted = !pool || isCopy || visitor.hasEvents(number, point);
        code.isOfCourse = pool && visitor.isOfCourses(number, point);
        code.suffices = pool && visitor.suffices(number, point);
        code.isNeedless = pool && visitor.isNeedless(number, point);
        for (unsigned i = 0; code.isOfCourse && i < op->operands.size(); ++i)
          if (const Buffer *buffer = op->operands[i].buffer;
              buffer && buffer->space == Space::Fragment && buffer->isRing)
            code.slotted.push_back(i);
        code.isLookedAt = code.isWanted || code.bytes ||
                          llvm::any_of(code.positions, [](const ExprCode &position) { return bool(position); });
      }
    }
  }

  void encode(const Op &op, OpCode &code) {
    auto encoded = [&](Attr attr) { return op.has(attr) ? ExprCode(op.expr(attr), values) : ExprCode(); };
    for (const Operand &operand : op.operands)
      code.positions.emplace_back(operand.buffer && operand.buffer->isRing ? operand.position : Expr(), values);
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

  std::optional<int64_t> evaluate(const ExprCode &code) const { return code.evaluate(values); }

  void unroll() {
    llvm::SmallVector<const Timeline *, 8> run;
    for (current = 0; current < timelines.size() && problem.empty(); ++current) {
      run.push_back(&unrolled());
      work += uint64_t(run.back()->length) * run.back()->length;
    }
    if (problem.empty())
      visitor.run({run, [this] { return choices.text(); }});
    if (problem.empty() && work > kMaxWork)
      problem = kTooManySteps;
  }

  /// The current timeline. Most runs have some of them in common.
  const Timeline &unrolled() {
    if (!pool) {
      unrollNow();
      return timeline();
    }
    SteeringChoices::Values key = choices.valuesOf(current);
    key.push_back(timeline().role);
    const Timeline *&kept = known[std::move(key)];
    if (!kept) {
      unrollNow();
      kept = pool->keep(timeline());
    }
    return *pool->of(timeline(), *kept);
  }

  void unrollNow() {
    role = timeline().role;
    timeline().events.clear();
    timeline().numbers.clear();
    timeline().turnBegins.clear();
    timeline().length = 0;
    course.clear();
    hasSufficed = false;
    if (!pool) // else many runs share it
      timeline().steps = choices.text();
    closed = 0;
    open.clear();
    choices.begin(current);
    unroll(roles[role]->body, 0);
    number();
    if (!course.empty() && courses[role].insert(course).second)
      visitor.course({role, course, choices.text()});
  }

  /// The events so far, for the pool.
  void number() {
    if (!pool)
      return;
    for (const Event &event : timeline().events)
      timeline().numbers.push_back(pool->numberOf(role, event));
    timeline().events.clear();
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
      if (ops && op)
        ops->come(role, event);
    }
    if (code.isLookedAt && (!code.isWanted || (code.isNeedless && hasSufficed)))
      events.pop_back();
    else if (code.isLookedAt)
      hasSufficed = code.suffices;
    if (code.isOfCourse)
      goOnCourse(point, code);
    lengthen(1);
  }

  void lengthen(unsigned events) {
    timeline().length += events;
    if (uint64_t(timeline().length) * timeline().length > kMaxWork)
      problem = kTooManySteps;
  }

  /// The positions are determined: `place` has looked.
  void goOnCourse(unsigned point, const OpCode &code) {
    course.push_back(point);
    for (const unsigned operand : code.slotted)
      course.push_back(code.positions[operand] ? evaluate(code.positions[operand]).value_or(0) : 0);
  }

  void place(Event &event, const OpCode &code) {
    for (unsigned i = 0; i < std::min<size_t>(code.positions.size(), kMostPlaced); ++i) {
      if (!code.positions[i])
        continue;
      const std::optional<int64_t> position = evaluate(code.positions[i]);
      if (!position)
        problem = "position " + event.op->operands[i].position.str() + " of " + points().nameOf(event.op) +
                  " is not determined by lets, loop variables and constants";
      event.positions[i] = position.value_or(0);
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
      if (code.carries)
        unrollTurn(loop, code, body, value - *begin);
      else
        unroll(loop.body, body);
      if (code.carries)
        *values[code.carry] += evaluate(code.step).value_or(0);
    }
    values[code.variable].reset();
    if (code.carries)
      values[code.carry].reset();
  }

  /// Timelines have many turns in common. Only groups of cp_async copies reach from one into the next.
  void unrollTurn(const Op &loop, const OpCode &code, unsigned body, size_t turn) {
    choices.beginTurn(current, turn);
    timeline().turnBegins.push_back(timeline().numbers.size() + timeline().events.size());
    if (hasGroups[role] || !pool)
      return unroll(loop.body, body);
    number();
    std::vector<unsigned> &numbers = timeline().numbers;
    hasSufficed = false; // so that no turn depends on the one before, or what comes after on how it was made
    SteeringChoices::Values key = choices.valuesOf(current, turn);
    key.append({role, body, *values[code.variable], *values[code.carry]});
    Turn &known = turns[std::move(key)];
    if (known.length != 0) {
      numbers.insert(numbers.end(), known.numbers.begin(), known.numbers.end());
      course.insert(course.end(), known.course.begin(), known.course.end());
      return lengthen(known.length);
    }
    const size_t firstEvent = numbers.size(), firstPlace = course.size();
    const unsigned before = timeline().length;
    unroll(loop.body, body);
    number();
    hasSufficed = false;
    known.numbers.assign(numbers.begin() + firstEvent, numbers.end());
    known.course.assign(course.begin() + firstPlace, course.end());
    known.length = timeline().length - before;
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
  TimelinePool *const pool;
  std::string &problem;
  const RunVisitor &visitor;
  const FullRunVisitor *ops = nullptr;

  ExprValues values;
  std::vector<std::vector<OpCode>> codes; ///< by role and point
  std::vector<Timeline> timelines;
  SteeringChoices choices;
  /// By the values that steer a role, and its number: groups of warps do the same where the same steers them.
  std::unordered_map<SteeringChoices::Values, const Timeline *, HashOfList> known;
  unsigned current = 0, role = 0; ///< what is being unrolled
  bool hasSufficed = false;       ///< the last event did
  unsigned now = 0;               ///< the event of the op that is being unrolled, or the one after it
  struct Turn {
    std::vector<unsigned> numbers; ///< of its events
    std::vector<int64_t> course;
    unsigned length = 0; ///< 0: not unrolled so far
  };
  /// By what steers it, role, loop, turn and carried value.
  std::unordered_map<SteeringChoices::Values, Turn, HashOfList> turns;
  std::vector<bool> hasGroups;                                               ///< by role: of cp_async copies
  std::vector<int64_t> course;                                               ///< of the timeline that is being unrolled
  std::vector<std::unordered_set<std::vector<int64_t>, HashOfList>> courses; ///< by role
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
  return Unroller(kernel, {&role}, {&points}, /*pool=*/nullptr, problem,
                  {nullptr, nullptr, nullptr, nullptr, nullptr, visitAll})
      .run();
}

bool fagen::forEachRun(const Kernel &kernel, llvm::ArrayRef<const Role *> roles, llvm::ArrayRef<const Points *> points,
                       TimelinePool &pool, std::string &problem, const RunVisitor &visitor) {
  problem.clear();
  return Unroller(kernel, roles, points, &pool, problem, visitor).run();
}

bool fagen::forEachFullRun(const Kernel &kernel, llvm::ArrayRef<const Role *> roles,
                           llvm::ArrayRef<const Points *> points, Extent extent, std::string &problem,
                           const FullRunVisitor &visitor) {
  problem.clear();
  const RunVisitor runs{nullptr, nullptr, nullptr, nullptr, nullptr, visitor.run};
  return Unroller(kernel, roles, points, extent, problem, runs, visitor).run();
}

// fagen: the values that steer a kernel's roles, one choice after the other.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "SteeringChoices.h"

#include "fagen/IR/Queries.h"
#include "fagen/IR/Steering.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cstdint>

using namespace fagen;
using namespace fagen::ir;

SteeringChoices::SteeringChoices(const Kernel &kernel, llvm::ArrayRef<const Role *> roles,
                                 std::vector<Timeline> &timelines, ExprValues &values, Extent extent)
    : kernel(kernel), roles(roles), extent(extent), timelines(timelines), values(values) {
  for (const Constant &constant : kernel.constants)
    valueOf(constant.name) = constant.value;
  findLimit();
  for (const Let &let : kernel.lets)
    if (!isOfIntegers(let.value)) // a choice, a real number: none that constants determine
      continue;
    else if (std::optional<int64_t> value = ExprCode(let.value, values).evaluate(values))
      valueOf(let.name) = *value;
  const auto [lets, turns] = steeringLets(kernel, roles);
  letCount = lets.size();
  turnsLet = turns;
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
}

static int64_t largestLiteral(const Expr &expr) {
  if (expr.kind() == ExprKind::Variable)
    return 0;
  return expr.kind() == ExprKind::Constant ? std::max(expr.value(), -std::max(expr.value(), -INT64_MAX))
                                           : std::max(largestLiteral(expr.lhs()), largestLiteral(expr.rhs()));
}

void SteeringChoices::findLimit() {
  int64_t stages = 1;
  for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
    stages = std::max<int64_t>(stages, buffer->stages);
  int64_t largest = 0; // literal: beyond it a predicate's value may change
  for (const Role *role : roles)
    walk(role->body, [&](const Op &op) {
      forEachSteering(op, [&](const Expr &expr) {
        if (const int64_t own = largestLiteral(expr); own > largest) {
          largest = own;
          farthest = expr;
        }
      });
    });
  limit =
      (extent == Extent::Whole ? 4 * stages + 2 : stages + 1) + (largest > stages ? std::min(largest, kMostSteps) : 0);
  turnLimit = stages;
}

/// One for each role, or for each group of its warps where it uses values that groups differ in; of these the first one
/// only in short runs, since all take the same values.
void SteeringChoices::addTimelines(const llvm::StringSet<> &ofGroups) {
  for (unsigned role = 0; role < roles.size(); ++role) {
    const bool isOfGroups = usesAny(*roles[role], ofGroups);
    const unsigned warps = isOfGroups ? std::min(kGroupWarps, roles[role]->warps) : roles[role]->warps;
    const unsigned all = extent == Extent::Short ? warps : roles[role]->warps;
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
llvm::SmallVector<unsigned, 8> SteeringChoices::steeringOf(const Timeline &timeline) const {
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

/// What the lets' own expressions say of two of them: the full tiles are never more than all tiles, and only so many
/// less as a tile of rows crosses. A bound is kept only if it lets both be equal: then fewer steps keep within it.
void SteeringChoices::findDifferences() {
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
bool SteeringChoices::isPossible(unsigned let, int64_t value) const {
  for (unsigned other = 0; other < let; ++other)
    if (const std::optional<Interval> &apart = differences[let][other]) {
      const int64_t difference = value - chosen[other];
      if (difference < apart->low || difference > apart->high)
        return false;
    }
  return true;
}

void SteeringChoices::forEach(llvm::function_ref<bool()> visitor) {
  visit = visitor;
  goesOn = true;
  if (turnsLet)
    enumerateTurns();
  else
    enumerate(0);
}

void SteeringChoices::choose() { goesOn = visit(); }

void SteeringChoices::enumerate(unsigned next) {
  if (next == steering.size())
    return choose();
  for (int64_t value = 0; value <= limit && goesOn; ++value) {
    if (!isPossible(next, value))
      continue;
    chosen[next] = value;
    enumerate(next + 1);
  }
}

/// See the head of Timeline.h.
void SteeringChoices::enumerateTurns() {
  enumerateTurns({});
  if (steering.empty()) { // turns are alike: rings go around over as many of them
    for (int64_t turns = 1; turns <= limit; ++turns)
      enumerateTurns(llvm::SmallVector<int64_t, 32>(turns, 0));
    return;
  }
  enumerateTurns({limit});
  if (extent == Extent::Short)
    return;
  enumerateTurns({turnLimit, turnLimit});
  for (int64_t between = 0; between < turnLimit; ++between)
    enumerateTurns({turnLimit - between, between, turnLimit - between});
}

/// Turns of all lengths up to these.
void SteeringChoices::enumerateTurns(llvm::ArrayRef<int64_t> most) {
  valueOf(turnsLet->name) = most.size();
  enumerateTurn(most, 0);
}

void SteeringChoices::enumerateTurn(llvm::ArrayRef<int64_t> most, unsigned next) {
  if (!goesOn)
    return;
  if (turnValues.size() == most.size())
    return choose();
  if (next == steering.size()) {
    const bool isBetween = most.size() == 3 && turnValues.size() == 1 && !steering.empty();
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

SteeringChoices::Values SteeringChoices::valuesOf(unsigned timeline) const {
  Values found{int64_t(turnValues.size())};
  auto add = [&](llvm::ArrayRef<int64_t> choice) {
    for (unsigned i : own[timeline])
      found.push_back(choice[i]);
  };
  if (!turnsLet)
    add(chosen);
  llvm::for_each(turnValues, add);
  return found;
}

SteeringChoices::Values SteeringChoices::valuesOf(unsigned timeline, size_t turn) const {
  Values found;
  for (unsigned i : own[timeline])
    found.push_back(turnValues[turn][i]);
  return found;
}

void SteeringChoices::begin(unsigned timeline) {
  for (const Steering &steered : steering)
    values[steered.number].reset();
  if (!turnsLet)
    assign(timeline, chosen);
  else
    beginTurn(timeline, 0); // what stands before the loop, if it names such lets
}

void SteeringChoices::beginTurn(unsigned timeline, size_t turn) {
  if (turn < turnValues.size())
    assign(timeline, turnValues[turn]);
}

void SteeringChoices::assign(unsigned timeline, llvm::ArrayRef<int64_t> choice) {
  for (unsigned i : own[timeline])
    values[steering[i].number] = choice[i];
}

std::string SteeringChoices::text() const {
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

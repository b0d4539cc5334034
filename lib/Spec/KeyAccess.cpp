// fagen: keys of the table to fields of Problem and Schedule, and back.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "OptionValues.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"

using namespace llvm;

namespace fagen {

static Location locationIn(ArrayRef<std::pair<std::string, Location>> locations, StringRef key,
                           const Location &otherwise) {
  const auto found = find_if(locations, [&](const auto &entry) { return entry.first == key; });
  return found == locations.end() ? otherwise : found->second;
}
Location Schedule::locationOf(StringRef key) const { return locationIn(locations, key, location); }
Location Variant::locationOf(StringRef key) const { return locationIn(problem.locations, key, location); }

unsigned Schedule::number(OptionKey key) const {
  assert(!optionInfo(key).constant.empty() && "no key that one pass reads");
  const auto found = numbers.find(key);
  return found == numbers.end() ? optionInfo(key).defaultNumber() : found->second;
}

std::string maskText(const Problem &problem) {
  return problem.form ? toText(*problem.form) : toString(problem.mask).str();
}

const form::Form &formOf(const Problem &problem) {
  return problem.form ? *problem.form->form : problem.mask == Mask::Causal ? form::causalForm() : form::noneForm();
}

void setKey(Problem &problem, OptionKey key, const OptionValue &value) {
  switch (key) {
  case OptionKey::Pass:
    problem.pass = PassKind(value.number);
    return;
  case OptionKey::DType:
    problem.dtype = DType(value.number);
    return;
  case OptionKey::KvDType:
    problem.kvDType = KvDType(value.number);
    return;
  case OptionKey::Accum:
    problem.accum = DType(value.number);
    return;
  case OptionKey::HeadDim:
    problem.headDimQK = value.number;
    problem.headDimV = value.second;
    return;
  case OptionKey::Mask:
    problem.form = value.form;
    problem.mask = value.form ? Mask::None : Mask(value.number);
    problem.formIndex = value.form ? value.number - kFirstFormNumber : 0;
    return;
  case OptionKey::Lse:
    problem.lse = value.number != 0;
    return;
  case OptionKey::Invariant:
    problem.invariant = value.number != 0;
    return;
  default:
    llvm_unreachable("no key of a problem");
  }
}

static OptionValue single(unsigned number) {
  OptionValue value;
  value.number = number;
  return value;
}

static OptionValue pair(unsigned first, unsigned second) {
  OptionValue value = single(first);
  value.second = second;
  return value;
}

static OptionValue ofMask(const Problem &problem) {
  OptionValue value = single(maskNumber(problem));
  value.form = problem.form;
  return value;
}

OptionValue getKey(const Problem &problem, OptionKey key) {
  switch (key) {
  case OptionKey::Pass:
    return single(unsigned(problem.pass));
  case OptionKey::DType:
    return single(unsigned(problem.dtype));
  case OptionKey::KvDType:
    return single(unsigned(problem.kvDType));
  case OptionKey::Accum:
    return single(unsigned(problem.accum));
  case OptionKey::HeadDim:
    return pair(problem.headDimQK, problem.headDimV);
  case OptionKey::Mask:
    return ofMask(problem);
  case OptionKey::Lse:
    return single(problem.lse);
  case OptionKey::Invariant:
    return single(problem.invariant);
  default:
    llvm_unreachable("no key of a problem");
  }
}

void setKey(Schedule &schedule, OptionKey key, const OptionValue &value) {
  switch (key) {
  case OptionKey::Tile:
    schedule.tileRows = value.number;
    schedule.tileKeys = value.second;
    return;
  case OptionKey::Warps:
    schedule.warps = value.number;
    return;
  case OptionKey::Mma:
    schedule.mma = Mma(value.number);
    return;
  case OptionKey::Copy:
    schedule.copy = Copy(value.number);
    return;
  case OptionKey::Stages:
    schedule.stages = value.number;
    return;
  case OptionKey::Refill:
    schedule.refill = Refill(value.number);
    return;
  case OptionKey::Barriers:
    schedule.barriers = BarrierPolicy(value.number);
    schedule.barrierPlaces = value.names;
    return;
  case OptionKey::Swizzle:
    schedule.swizzle = Swizzle(value.number);
    return;
  case OptionKey::Vector:
    schedule.vectorBytes = value.number;
    return;
  case OptionKey::QIn:
    schedule.qIn = OperandPlace(value.number);
    return;
  case OptionKey::PIn:
    schedule.pIn = OperandPlace(value.number);
    return;
  case OptionKey::Reduce:
    schedule.reduce = Reduce(value.number);
    return;
  case OptionKey::Roles:
    schedule.roles = Roles(value.number);
    return;
  case OptionKey::Overlap:
    schedule.overlap = Overlap(value.number);
    return;
  case OptionKey::Grid:
    schedule.grid = Grid(value.number);
    return;
  case OptionKey::Exp:
    schedule.exp = Exp(value.number);
    schedule.expMixed = value.second;
    return;
  case OptionKey::Rescale:
    schedule.rescale = RescalePolicy(value.number);
    return;
  case OptionKey::Tanh:
    schedule.tanh = Tanh(value.number);
    return;
  case OptionKey::Gqa:
    schedule.gqa = Gqa(value.number);
    return;
  case OptionKey::Split:
    schedule.split = value.number;
    return;
  default:
    assert(!optionInfo(key).constant.empty() && "no key of a schedule");
    schedule.numbers.erase(key);
    if (value.number != optionInfo(key).defaultNumber())
      schedule.numbers[key] = value.number;
  }
}

OptionValue getKey(const Schedule &schedule, OptionKey key) {
  switch (key) {
  case OptionKey::Tile:
    return pair(schedule.tileRows, schedule.tileKeys);
  case OptionKey::Warps:
    return single(schedule.warps);
  case OptionKey::Mma:
    return single(unsigned(schedule.mma));
  case OptionKey::Copy:
    return single(unsigned(schedule.copy));
  case OptionKey::Stages:
    return single(schedule.stages);
  case OptionKey::Refill:
    return single(unsigned(schedule.refill));
  case OptionKey::Barriers: {
    OptionValue value = single(unsigned(schedule.barriers));
    value.names = schedule.barrierPlaces;
    return value;
  }
  case OptionKey::Swizzle:
    return single(unsigned(schedule.swizzle));
  case OptionKey::Vector:
    return single(schedule.vectorBytes);
  case OptionKey::QIn:
    return single(unsigned(schedule.qIn));
  case OptionKey::PIn:
    return single(unsigned(schedule.pIn));
  case OptionKey::Reduce:
    return single(unsigned(schedule.reduce));
  case OptionKey::Roles:
    return single(unsigned(schedule.roles));
  case OptionKey::Overlap:
    return single(unsigned(schedule.overlap));
  case OptionKey::Grid:
    return single(unsigned(schedule.grid));
  case OptionKey::Exp:
    return pair(unsigned(schedule.exp), schedule.expMixed);
  case OptionKey::Rescale:
    return single(unsigned(schedule.rescale));
  case OptionKey::Tanh:
    return single(unsigned(schedule.tanh));
  case OptionKey::Gqa:
    return single(unsigned(schedule.gqa));
  case OptionKey::Split:
    return single(schedule.split);
  default:
    return single(schedule.number(key));
  }
}

bool haveSameValues(const Schedule &a, const Schedule &b) {
  return all_of(allOptions(), [&](const OptionInfo &option) {
    return option.block != OptionBlock::Schedule || getKey(a, option.key) == getKey(b, option.key);
  });
}

} // namespace fagen

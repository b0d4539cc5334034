// fagen: which values of keys go with which.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Spec/GoesWith.h"

#include "fagen/Target/MmaInstrs.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace fagen {

static bool isOnTarget(const TargetInfo &target, const OptionInfo &option, unsigned number) {
  const OptionValueInfo *const value = option.findValue(number);
  return !value || target.hasAll(value->needs);
}

/// What a value asks of other keys; an integer's default asks for nothing.
static ArrayRef<GoesWith> rulesOf(const OptionInfo &option, unsigned number) {
  if (const OptionValueInfo *const value = option.findValue(number))
    return value->goesWith;
  if (option.goesWith.empty() || number == option.defaultNumber())
    return {};
  return option.goesWith;
}

/// The first rule of the value that the other keys break.
static std::optional<Clash> findClash(const OptionInfo &option, unsigned number, const KeyNumbers &numbers) {
  auto canAsk = [&](OptionKey key) {
    return numbers.isKnown(key) && isOnTarget(numbers.target, optionInfo(key), numbers.of(key));
  };
  if (canAsk(OptionKey::Mma))
    if (const GoesWith *const taken = mmaFamily(Mma(numbers.of(OptionKey::Mma))).taken(option.key);
        taken && !is_contained(taken->numbers, number))
      return Clash{&option, OptionKey::Mma, nullptr, taken->because};
  for (const GoesWith &rule : rulesOf(option, number))
    if (canAsk(rule.key) && !is_contained(rule.numbers, numbers.of(rule.key)))
      return Clash{&option, rule.key, &rule, rule.because};
  return std::nullopt;
}

std::vector<Clash> findClashes(const KeyNumbers &numbers) {
  std::vector<Clash> clashes;
  if (numbers.isKnown(OptionKey::Mma) &&
      !isOnTarget(numbers.target, optionInfo(OptionKey::Mma), numbers.of(OptionKey::Mma)))
    return clashes;
  for (const OptionInfo &option : allOptions()) {
    if (!numbers.isKnown(option.key))
      continue;
    const unsigned number = numbers.of(option.key);
    std::optional<Clash> clash =
        isOnTarget(numbers.target, option, number) ? findClash(option, number, numbers) : std::nullopt;
    if (!clash)
      continue;
    const bool isGiven = numbers.isGiven(option.key);
    clash->blamed = isGiven ? option.key : numbers.isGiven(clash->with) ? clash->with : OptionKey::Mma;
    clashes.push_back(*clash);
  }
  erase_if(clashes, [&](const Clash &clash) { // what follows from another one
    return clash.blamed != clash.option->key &&
           any_of(clashes, [&](const Clash &other) { return other.option->key == clash.blamed; });
  });
  return clashes;
}

/// Values of an enumerated key that the family and the target have, the family's best first.
static std::vector<unsigned> valuesOf(const OptionInfo &option, Mma family, const TargetInfo &target) {
  const GoesWith *const taken = mmaFamily(family).taken(option.key);
  std::vector<unsigned> values;
  auto add = [&](const OptionValueInfo &value) {
    if (!value.notYet && target.hasAll(value.needs))
      values.push_back(value.number);
  };
  if (taken)
    for (unsigned number : taken->numbers)
      add(*option.findValue(number));
  else
    for_each(option.values, add);
  return values;
}

static bool keepsRules(const OptionInfo &option, unsigned number, const KeyNumbers &numbers) {
  return !findClash(option, number, numbers);
}

std::vector<unsigned> valuesThatFit(const Clash &clash, const KeyNumbers &numbers) {
  const OptionInfo &option = *clash.option;
  if (option.values.empty())
    return {option.defaultNumber()};
  std::vector<unsigned> values = valuesOf(option, Mma(numbers.of(OptionKey::Mma)), numbers.target);
  erase_if(values, [&](unsigned number) {
    return any_of(rulesOf(option, number), [&](const GoesWith &rule) {
      return rule.key == clash.with && !is_contained(rule.numbers, numbers.of(rule.key));
    });
  });
  std::vector<unsigned> fitting; // the other keys, too, if any does
  copy_if(values, std::back_inserter(fitting), [&](unsigned number) { return keepsRules(option, number, numbers); });
  return fitting.empty() ? values : fitting;
}

static bool goesWithAll(const OptionInfo &option, unsigned number, const KeyNumbers &numbers) {
  auto allows = [&](const GoesWith &rule, unsigned said) { return is_contained(rule.numbers, said); };
  if (!keepsRules(option, number, numbers))
    return false;
  return all_of(allOptions(), [&](const OptionInfo &other) {
    return other.key == option.key || !numbers.isKnown(other.key) ||
           all_of(rulesOf(other, numbers.of(other.key)),
                  [&](const GoesWith &rule) { return rule.key != option.key || allows(rule, number); });
  });
}

std::vector<OptionKey> keysWithoutDefault() {
  std::vector<const OptionInfo *> open;
  for (const OptionInfo &option : allOptions())
    if (option.block == OptionBlock::Schedule && option.defaultText.empty() && !option.required)
      open.push_back(&option);
  auto asksOpenOnes = [&](const OptionInfo *option) {
    return any_of(option->values, [&](const OptionValueInfo &value) {
      return any_of(value.goesWith, [&](const GoesWith &rule) { return is_contained(open, &optionInfo(rule.key)); });
    });
  };
  std::vector<OptionKey> keys;
  while (!open.empty()) {
    auto next = find_if_not(open, asksOpenOnes);
    if (next == open.end())
      next = open.begin();
    keys.push_back((*next)->key);
    open.erase(next);
  }
  return keys;
}

unsigned bestValue(const OptionInfo &option, const KeyNumbers &numbers) {
  const std::vector<unsigned> values = valuesOf(option, Mma(numbers.of(OptionKey::Mma)), numbers.target);
  auto best = find_if(values, [&](unsigned number) { return goesWithAll(option, number, numbers); });
  if (best == values.end()) // so that what others ask for is what is wrong
    best = find_if(values, [&](unsigned number) { return keepsRules(option, number, numbers); });
  return values.empty() ? 0 : best == values.end() ? values.front() : *best;
}

} // namespace fagen

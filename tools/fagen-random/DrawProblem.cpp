// fagen: draws the problem of a kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Draw.h"
#include "Rules.h"
#include "fagen/Target/MmaInstrs.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace fagen::random {

namespace {

/// Problems whose K and V have one byte an element, of those on targets that can read them.
constexpr unsigned kBytesPercent = 12;

class ProblemDrawer {
public:
  ProblemDrawer(Random &random, const std::vector<const TargetInfo *> &targets, unsigned most)
      : random(random), targets(targets), most(most / targets.size()) {}

  std::vector<Setting> draw();

private:
  unsigned drawMultiple();
  std::optional<Setting> drawKvDType();
  std::vector<Plain> plainsOf(const OptionInfo &option);
  Plain drawHeadDim();
  std::optional<Setting> drawSetting(const OptionInfo &option);
  bool hasProducts(const Setting &accum, const std::vector<Setting> &settings) const;

  Random &random;
  const std::vector<const TargetInfo *> &targets;
  const unsigned most;
  unsigned points = 1;   ///< of the axes so far
  bool hasBytes = false; ///< whether K and V have one byte an element, at every point: few schedules fit both
  unsigned multiple = 8;
};

} // namespace

/// What head dims are a multiple of: that of a family of tensor-core instructions which every target has, or any.
unsigned ProblemDrawer::drawMultiple() {
  std::vector<unsigned> multiples;
  for (const OptionValueInfo &family : optionInfo(OptionKey::Mma).values)
    if (family.needs != 0 && all_of(targets, [&](const TargetInfo *target) { return isAvailable(family, *target); }))
      multiples.push_back(firstMmaInstr(Mma(family.number)).headDimMultiple);
  const unsigned any = optionInfo(OptionKey::HeadDim).multipleOf;
  return random.percent(20) ? any : random.pick(multiples);
}

/// The types of one byte, one or all of them; or the one that is no byte, which hardly needs to be said.
std::optional<Setting> ProblemDrawer::drawKvDType() {
  const OptionInfo &option = optionInfo(OptionKey::KvDType);
  if (!hasBytes && !random.percent(5))
    return std::nullopt;
  std::vector<Plain> plains = plainsOf(option);
  erase_if(plains, [&](const Plain &plain) { return (KvDType(plain.number) != KvDType::Same) != hasBytes; });
  Setting setting(option.key, plains.front());
  if (plains.size() > 1 && plains.size() <= most && random.percent(25))
    setting.items.push_back({plains.back()});
  setting.isAxis = setting.items.size() > 1 || random.percent(5);
  return setting;
}

/// Small ones are likely: kernels of large ones take the emulator longer.
Plain ProblemDrawer::drawHeadDim() {
  static constexpr unsigned kLikely[] = {16, 32, 32, 48, 64, 64, 64, 96, 128};
  const OptionInfo &option = optionInfo(OptionKey::HeadDim);
  auto one = [&]() -> unsigned {
    if (const unsigned likely = random.pick(kLikely); multiple != option.multipleOf && random.percent(60))
      return alignTo(likely, multiple);
    const unsigned largest = random.percent(75) ? 64 : option.max;
    return multiple * random.between((option.min + multiple - 1) / multiple, largest / multiple);
  };
  Plain plain;
  plain.number = plain.second = one();
  if (random.percent(25))
    plain.second = one();
  return plain;
}

/// What can be drawn: values that something is generated for, on every target.
std::vector<Plain> ProblemDrawer::plainsOf(const OptionInfo &option) {
  std::vector<Plain> plains;
  for (const OptionValueInfo &value : option.values)
    if (all_of(targets, [&](const TargetInfo *target) { return isAvailable(value, *target); }))
      plains.push_back(value.number);
  if (option.type == OptionType::Switch)
    plains = {Plain(0), Plain(1)};
  while (option.type == OptionType::HeadDim && plains.size() != 3)
    if (Plain plain = drawHeadDim(); !is_contained(plains, plain))
      plains.push_back(plain);
  random.shuffle(plains);
  return plains;
}

/// Whether one instruction family computes every point, with whatever accumulators were drawn.
bool ProblemDrawer::hasProducts(const Setting &accum, const std::vector<Setting> &settings) const {
  auto dtypes = find_if(settings, [](const Setting &setting) { return setting.option->key == OptionKey::DType; });
  if (hasBytes)
    return all_of(accum.items, [](const std::vector<Plain> &item) { return DType(item.front().number) == DType::F32; });
  auto canAll = [&](Mma family, const Plain &type) {
    return all_of(dtypes->items, [&](const std::vector<Plain> &item) {
      const MmaInstrInfo *instr = findMmaInstr(family, DType(item.front().number), DType(type.number));
      return instr && instr->implemented && firstMmaInstr(family).headDimMultiple <= multiple &&
             all_of(targets, [&](const TargetInfo *target) { return target->hasAll(instr->needs); });
    });
  };
  return any_of(optionInfo(OptionKey::Mma).values, [&](const OptionValueInfo &family) {
    return all_of(accum.items,
                  [&](const std::vector<Plain> &item) { return canAll(Mma(family.number), item.front()); });
  });
}

std::optional<Setting> ProblemDrawer::drawSetting(const OptionInfo &option) {
  if (!option.required && random.percent(50))
    return std::nullopt;
  const std::vector<Plain> plains = plainsOf(option);
  unsigned length = 1;
  while (length < plains.size() && points * (length + 1) <= most && random.percent(35))
    ++length;
  Setting setting(option.key, plains.front());
  for (unsigned i = 1; i != length; ++i)
    setting.items.push_back({plains[i]});
  setting.isAxis = length > 1 || random.percent(5);
  return setting;
}

std::vector<Setting> ProblemDrawer::draw() {
  const OptionInfo &kv = optionInfo(OptionKey::KvDType);
  auto canRead = [&](const OptionValueInfo &value) {
    return KvDType(value.number) != KvDType::Same &&
           all_of(targets, [&](const TargetInfo *target) { return isAvailable(value, *target); });
  };
  hasBytes = any_of(kv.values, canRead) && random.percent(kBytesPercent);
  multiple = hasBytes ? kBytesColumns : drawMultiple();
  std::vector<Setting> settings;
  for (const OptionInfo &option : allOptions()) {
    if (option.block != OptionBlock::Problem)
      continue;
    std::optional<Setting> setting = option.key == OptionKey::KvDType ? drawKvDType() : drawSetting(option);
    if (!setting || (option.key == OptionKey::Accum && !hasProducts(*setting, settings)))
      continue;
    points *= setting->items.size();
    settings.push_back(std::move(*setting));
  }
  if (random.percent(40))
    random.shuffle(settings);
  return settings;
}

void drawProblem(Random &random, const std::vector<const TargetInfo *> &targets, unsigned most, Kernel &kernel) {
  kernel.problem = ProblemDrawer(random, targets, most).draw();
  kernel.points = expandPoints(kernel, targets);
}

} // namespace fagen::random

// fagen: draws a schedule.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// First the keys without which nothing can be judged: mma, tile and warps. They may be one setting for all points, or
// one for the points of a `when` and another for the rest. Then the others, one by one, each with values that fit what
// is there; then whens that set some keys anew.

#include "Conditions.h"
#include "Draw.h"
#include "Rules.h"
#include "fagen/Target/MmaInstrs.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace fagen::random {

namespace {

/// Where warp groups can do the products, so many of the schedules are theirs at least: most head dims and targets
/// leave them no chance, and theirs are the kernels with most that can go wrong.
constexpr unsigned kWgmmaPercent = 75;

/// Indices of points.
using Subset = std::vector<size_t>;

struct Base {
  Plain mma, tile, warps;
};

class ScheduleDrawer {
public:
  ScheduleDrawer(Random &random, const std::vector<Point> &points, unsigned variants, Schedule &schedule)
      : random(random), points(points), variants(variants), schedule(schedule), held(points.size()) {}

  void draw();

private:
  // What fits.
  bool fits(size_t point, const Resolved &resolved) const;
  bool fits(const Subset &subset, Setting &candidate) const;
  bool fits(const Subset &subset, const Base &base) const;
  std::vector<Plain> plainsOf(const OptionInfo &option, const Subset &subset);
  std::vector<Plain> fittingPlains(const OptionInfo &option, const Subset &subset);
  std::optional<Plain> drawPlaces(const OptionValueInfo &value, const Subset &subset);

  // Settings.
  std::optional<Base> drawBase(const Subset &subset);
  Base drawTile(Mma mma);
  void addBase(const Base &base, const Subset &subset, std::vector<Statement> &body);
  std::optional<Setting> drawSetting(const OptionInfo &option, const Subset &subset);
  void addTunes(Setting &setting, const Subset &subset);
  void add(Setting setting, const Subset &subset, std::vector<Statement> &body);

  // Whens.
  When drawWhen(const Subset &within, Subset &subset);
  void drawSplit(const Subset &all);
  void drawOverrides(const Subset &within, std::vector<Statement> &body, unsigned depth);
  void reorder();

  Random &random;
  const std::vector<Point> &points;
  unsigned variants;
  Schedule &schedule;
  std::vector<Resolved> held; ///< the settings so far, at each point
};

} // namespace

//===-- What fits
//--------------------------------------------------------------------------------------------------===//

bool ScheduleDrawer::fits(size_t point, const Resolved &resolved) const {
  unsigned count = 0;
  bool isSound = true;
  forEachVariant(resolved, [&](const Values &values) {
    ++count;
    isSound = isSound && findBreaches(points[point], values).empty();
  });
  return isSound && count <= variants;
}

bool ScheduleDrawer::fits(const Subset &subset, Setting &candidate) const {
  return all_of(subset, [&](size_t point) {
    Resolved resolved = held[point];
    resolved[candidate.option->key] = &candidate;
    return fits(point, resolved);
  });
}

bool ScheduleDrawer::fits(const Subset &subset, const Base &base) const {
  Setting mma(OptionKey::Mma, base.mma), tile(OptionKey::Tile, base.tile), warps(OptionKey::Warps, base.warps);
  return all_of(subset, [&](size_t point) {
    Resolved resolved = held[point];
    for (Setting *setting : {&mma, &tile, &warps})
      resolved[setting->option->key] = setting;
    return fits(point, resolved);
  });
}

/// Names that hold at every point of the subset, and some more. Nothing where no names will do.
std::optional<Plain> ScheduleDrawer::drawPlaces(const OptionValueInfo &value, const Subset &subset) {
  Plain plain;
  plain.number = value.number;
  bool isPossible = true;
  auto add = [&](StringRef name) {
    if (!is_contained(plain.names, name.str()))
      plain.names.push_back(name.str());
  };
  for (size_t point : subset)
    forEachVariant(held[point], [&](const Values &values) {
      const auto groups = neededPlaces(points[point], values);
      isPossible = isPossible && groups;
      if (groups)
        for (const std::vector<StringRef> &group : *groups)
          add(random.pick(group));
    });
  for (StringRef name : value.argumentNames)
    if (random.percent(20))
      add(name);
  if (plain.names.empty())
    add(value.argumentNames.front());
  random.shuffle(plain.names);
  return isPossible ? std::optional<Plain>(plain) : std::nullopt;
}

/// Values of a key that may stand in a spec, whatever else it says.
std::vector<Plain> ScheduleDrawer::plainsOf(const OptionInfo &option, const Subset &subset) {
  std::vector<Plain> plains;
  for (const OptionValueInfo &value : option.values) {
    if (!all_of(subset, [&](size_t point) { return isAvailable(value, *points[point].target); }) || value.notYet)
      continue;
    Plain plain;
    plain.number = value.number;
    if (value.argument == ArgumentKind::Number)
      plain.second = random.between(value.argumentMin, value.argumentMax);
    if (value.argument != ArgumentKind::Names)
      plains.push_back(plain);
    else if (std::optional<Plain> places = drawPlaces(value, subset))
      plains.push_back(*places);
  }
  for (unsigned bytes : option.allowed)
    plains.push_back(bytes);
  if (option.type == OptionType::Switch)
    plains = {Plain(0), Plain(1)};
  if (option.type == OptionType::Integer)
    for (unsigned number = option.takesAuto ? 0 : option.min; number <= option.max; ++number)
      plains.push_back(number);
  if (option.type == OptionType::Tile) {
    const Mma mma =
        subset.empty() ? plainFamily().family : Mma(held[subset.front()].at(OptionKey::Mma)->items[0][0].number);
    for (unsigned tries = 0; tries != 12; ++tries)
      plains.push_back(drawTile(mma).tile);
  }
  return plains;
}

std::vector<Plain> ScheduleDrawer::fittingPlains(const OptionInfo &option, const Subset &subset) {
  std::vector<Plain> fitting;
  for (const Plain &plain : plainsOf(option, subset)) {
    Setting candidate(option.key, plain);
    if (!is_contained(fitting, plain) && fits(subset, candidate))
      fitting.push_back(plain);
  }
  return fitting;
}

//===-- Settings
//---------------------------------------------------------------------------------------------------===//

/// A tile that suits the instructions, and warps that can share it. Small ones are likely.
Base ScheduleDrawer::drawTile(Mma mma) {
  static constexpr unsigned kSlabs[] = {1, 1, 2, 2, 3, 4, 4, 6, 8};
  static constexpr unsigned kKeys[] = {1, 1, 2, 2, 3, 4};
  static constexpr unsigned kRows[] = {1, 2, 3, 4, 5, 7, 8, 8, 12, 16, 16, 24, 32};
  const MmaInstrInfo &instr = firstMmaInstr(mma);
  const auto [mostRows, mostKeys] = largestTile(mma);
  unsigned rows = instr.slabRows * (mmaFamily(mma).isCollective ? random.pick(kSlabs) : random.pick(kRows));
  unsigned keys = instr.keyMultiple * random.pick(kKeys);
  if (rows > mostRows || random.percent(3)) {
    rows = instr.slabRows * random.between(1, mostRows / instr.slabRows);
    keys = instr.keyMultiple * random.between(1, 6);
  } else if (random.percent(mmaFamily(mma).unitWarps > 1 ? 20 : 3)) { // its tiles are wide ones
    keys = instr.keyMultiple * random.between(1, mostKeys / instr.keyMultiple);
  }
  Base base;
  base.mma.number = unsigned(mma);
  base.warps.number = random.pick(warpsFor(mma, rows));
  keys *= keyWarps(mma, rows, base.warps.number);
  base.tile.number = rows;
  base.tile.second = std::min(keys, mostKeys / instr.keyMultiple * instr.keyMultiple);
  return base;
}

/// The largest halving of a random tile that fits; the smallest tile where none does.
std::optional<Base> ScheduleDrawer::drawBase(const Subset &subset) {
  const std::vector<OptionValueInfo> &families = optionInfo(OptionKey::Mma).values;
  std::vector<Base> smallest;
  for (const OptionValueInfo &family : families) {
    const MmaInstrInfo &instr = firstMmaInstr(Mma(family.number));
    const Base base{family.number, Plain(instr.slabRows, instr.keyMultiple), instr.slabWarps};
    if (!family.notYet && fits(subset, base))
      smallest.push_back(base);
  }
  if (smallest.empty())
    return std::nullopt;
  const auto ofGroups =
      find_if(smallest, [](const Base &base) { return mmaFamily(Mma(base.mma.number)).unitWarps > 1; });
  const Base least = ofGroups != smallest.end() && random.percent(kWgmmaPercent) ? *ofGroups : random.pick(smallest);
  for (unsigned tries = 0; tries != 20; ++tries)
    if (Base base = drawTile(Mma(least.mma.number)); fits(subset, base))
      return base;
  return least;
}

void ScheduleDrawer::add(Setting setting, const Subset &subset, std::vector<Statement> &body) {
  Statement &statement = body.emplace_back();
  statement.setting = std::make_unique<Setting>(std::move(setting));
  for (size_t point : subset)
    held[point][statement.setting->option->key] = statement.setting.get();
}

void ScheduleDrawer::addBase(const Base &base, const Subset &subset, std::vector<Statement> &body) {
  add(Setting(OptionKey::Tile, base.tile), subset, body);
  add(Setting(OptionKey::Warps, base.warps), subset, body);
  add(Setting(OptionKey::Mma, base.mma), subset, body);
}

/// Choices after the first are what a tuner may try: any value will do, those that do not fit are dropped.
void ScheduleDrawer::addTunes(Setting &setting, const Subset &subset) {
  if (!random.percent(8))
    return;
  const std::vector<Plain> plains = plainsOf(*setting.option, subset);
  for (std::vector<Plain> &choices : setting.items)
    for (unsigned more = plains.empty() ? 0 : random.between(1, 2); more != 0; --more)
      if (const Plain &plain = random.pick(plains); !is_contained(choices, plain))
        choices.push_back(plain);
}

/// Small numbers of an integer are likely; an axis has two or three items.
std::optional<Setting> ScheduleDrawer::drawSetting(const OptionInfo &option, const Subset &subset) {
  std::vector<Plain> plains = fittingPlains(option, subset);
  if (plains.empty())
    return std::nullopt;
  if (option.type == OptionType::Integer && plains.size() > 3 && random.percent(75))
    plains.resize(3);
  random.shuffle(plains);
  Setting setting(option.key, plains.front());
  for (size_t i = 1; i < plains.size() && setting.items.size() < 3 && random.percent(15); ++i) {
    setting.items.push_back({plains[i]});
    setting.isAxis = true;
    if (!fits(subset, setting))
      setting.items.pop_back();
  }
  setting.isAxis = setting.items.size() > 1 || random.percent(3);
  addTunes(setting, subset);
  return setting;
}

//===-- Whens
//------------------------------------------------------------------------------------------------------===//

/// A when whose body is still empty; `subset` becomes the points where it holds.
When ScheduleDrawer::drawWhen(const Subset &within, Subset &subset) {
  Condition condition = drawWhenCondition(random, points);
  When when{condition.text, condition.holds, {}};
  for (size_t point : within)
    if (when.holds[point])
      subset.push_back(point);
  return when;
}

/// mma, tile and warps for all points; or for those where a condition holds, and for the others.
void ScheduleDrawer::drawSplit(const Subset &all) {
  Subset chosen;
  When when = drawWhen(all, chosen);
  Subset others;
  for (size_t point : all)
    if (!when.holds[point])
      others.push_back(point);
  if (chosen.empty() || others.empty() || !random.percent(50)) {
    addBase(*drawBase(all), all, schedule.body); // the problem was drawn so that one family computes all of it
    return;
  }
  addBase(*drawBase(others), others, schedule.body);
  addBase(*drawBase(chosen), chosen, when.body);
  schedule.body.push_back({nullptr, std::make_unique<When>(std::move(when))});
}

void ScheduleDrawer::drawOverrides(const Subset &within, std::vector<Statement> &body, unsigned depth) {
  Subset subset;
  When when = drawWhen(within, subset);
  if (std::optional<Base> base; random.percent(20) && (base = drawBase(subset)))
    addBase(*base, subset, when.body);
  for (const OptionInfo &option : allOptions()) {
    const bool isThere = any_of(when.body, [&](const Statement &s) { return s.setting->option == &option; });
    if (option.block == OptionBlock::Schedule && !isThere && random.percent(12))
      if (std::optional<Setting> setting = drawSetting(option, subset))
        add(std::move(*setting), subset, when.body);
  }
  if (depth != 0 && random.percent(30))
    drawOverrides(subset, when.body, depth - 1);
  body.push_back({nullptr, std::make_unique<When>(std::move(when))});
}

/// Settings that no when touches may stand after the whens too.
void ScheduleDrawer::reorder() {
  auto isWhen = [](const Statement &statement) { return statement.when != nullptr; };
  auto firstWhen = find_if(schedule.body, isWhen);
  std::vector<Statement> settings(std::make_move_iterator(schedule.body.begin()), std::make_move_iterator(firstWhen));
  schedule.body.erase(schedule.body.begin(), firstWhen);
  if (random.percent(40))
    random.shuffle(settings);
  schedule.body.insert(schedule.body.begin(), std::make_move_iterator(settings.begin()),
                       std::make_move_iterator(settings.end()));
}

/// Values of other keys go with certain values of these only (cluster with a grid, rescale with an overlap): drawn
/// first.
static bool isNeededByOthers(OptionKey key) {
  return any_of(allOptions(), [&](const OptionInfo &option) {
    return any_of(option.goesWith, [&](const GoesWith &rule) { return rule.key == key; });
  });
}

void ScheduleDrawer::draw() {
  Subset all;
  for (size_t point = 0; point != points.size(); ++point)
    all.push_back(point);
  drawSplit(all);
  std::vector<Statement> settings;
  std::vector<const OptionInfo *> options;
  for (const OptionInfo &option : allOptions())
    if (option.block == OptionBlock::Schedule && !option.required)
      options.push_back(&option);
  random.shuffle(options);
  std::stable_partition(options.begin(), options.end(),
                        [](const OptionInfo *option) { return isNeededByOthers(option->key); });
  for (const OptionInfo *option : options)
    if (random.percent(isNeededByOthers(option->key) ? 75 : 40))
      if (std::optional<Setting> setting = drawSetting(*option, all))
        add(std::move(*setting), all, settings);
  schedule.body.insert(schedule.body.begin(), std::make_move_iterator(settings.begin()),
                       std::make_move_iterator(settings.end()));
  reorder();
  for (unsigned whens = random.percent(35) ? random.between(1, 2) : 0; whens != 0; --whens)
    drawOverrides(all, schedule.body, 1);
}

void drawSchedule(Random &random, const std::vector<Point> &points, unsigned variants, Schedule &schedule) {
  ScheduleDrawer(random, points, variants, schedule).draw();
}

} // namespace fagen::random

// fagen: what the keys of one variant must satisfy together: numbers, stated a second time.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Rules.h"

#include "fagen/Lower/Lower.h"
#include "fagen/Spec/GoesWith.h"
#include "fagen/Target/MmaInstrs.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace fagen::random {

namespace {

/// A schedule at a point, every key with its value.
class Variant {
public:
  Variant(const Point &point, const Values &schedule) : point(point), schedule(schedule) {
    for (OptionKey key : keysWithoutDefault()) // later ones see what was chosen before
      if (!find(key))
        chosen[key] = policy(key);
  }

  bool isGiven(OptionKey key) const { return schedule.count(key) != 0; }
  size_t size() const { return schedule.size(); }
  unsigned number(OptionKey key) const {
    const Plain *found = find(key);
    return found ? found->number : policy(key);
  }
  unsigned second(OptionKey key) const { return find(key)->second; }
  Mma mma() const { return Mma(number(OptionKey::Mma)); }
  DType dtype() const { return DType(number(OptionKey::DType)); }
  DType accum() const { return DType(number(OptionKey::Accum)); }
  Copy copy() const { return Copy(number(OptionKey::Copy)); }
  Swizzle swizzle() const { return Swizzle(number(OptionKey::Swizzle)); }
  OperandPlace qIn() const { return OperandPlace(number(OptionKey::QIn)); }
  OperandPlace pIn() const { return OperandPlace(number(OptionKey::PIn)); }
  Overlap overlap() const { return Overlap(number(OptionKey::Overlap)); }
  Grid grid() const { return Grid(number(OptionKey::Grid)); }
  Refill refill() const { return Refill(number(OptionKey::Refill)); }
  Reduce reduce() const { return Reduce(number(OptionKey::Reduce)); }
  const MmaInstrInfo &instr() const { return firstMmaInstr(mma()); }
  /// Whether the target has the products; where it has not, nothing else is said of what goes with them.
  bool isOnTarget() const { return point.target->hasAll(optionInfo(OptionKey::Mma).findValue(unsigned(mma()))->needs); }
  const MmaFamilyInfo &family() const { return mmaFamily(mma()); }
  bool isOfWarpGroups() const { return family().unitWarps > 1 && isOnTarget(); }
  /// The same as the compiler's table of rules reads it.
  template <typename Ask> auto ask(Ask &&question) const {
    return question(
        KeyNumbers{*point.target, [&](OptionKey key) { return number(key); }, [](OptionKey) { return true; },
                   [&](OptionKey key) { return optionInfo(key).block == OptionBlock::Problem || isGiven(key); }});
  }
  unsigned keyWarps() const { return random::keyWarps(mma(), number(OptionKey::Tile), number(OptionKey::Warps)); }

  const std::vector<std::string> &names(OptionKey key) const { return find(key)->names; }

  Values plain() const;
  fagen::Variant lowerable() const;
  uint64_t sharedBytes() const;
  std::optional<std::vector<std::vector<StringRef>>> neededPlaces() const;
  const Point &point;

private:
  const Plain *find(OptionKey key) const;
  unsigned policy(OptionKey key) const;

  const Values &schedule;
  std::map<OptionKey, unsigned> chosen;
};

/// Collects the breaches of one variant.
class Judge {
public:
  explicit Judge(const Variant &variant) : variant(variant) {}
  std::vector<Breach> run();
  /// Without the rule of shared memory, for which a kernel is made.
  std::vector<Breach> runUnmade();

private:
  void require(bool holds, StringRef rule, OptionKey key);
  void judgeValues();
  void judgeProducts();
  void judgeWarps();
  void judgeGoesWith();
  void judgePassNumbers();
  void judgeNumbers();
  void judgeBoxes();
  void judgeWarpGroupTile();
  void judgeShared();
  void judgePlaces();

  const Variant &variant;
  std::vector<Breach> breaches;
};

} // namespace

//===-- Values of all keys
//-----------------------------------------------------------------------------------------===//

/// Keys that the spec leaves to fagen: the first value of the family that goes with the other keys.
unsigned Variant::policy(OptionKey key) const {
  const auto found = chosen.find(key);
  if (found != chosen.end())
    return found->second;
  return bestValue(optionInfo(key), {*point.target, [&](OptionKey other) { return number(other); },
                                     [&](OptionKey other) {
                                       return optionInfo(other).block == OptionBlock::Schedule &&
                                              (find(other) || chosen.count(other) != 0);
                                     },
                                     [](OptionKey) { return false; }});
}

/// Defaults by key; null where policy chooses.
static const Plain *findDefault(OptionKey key) {
  static const std::vector<std::optional<Plain>> kDefaults = [] {
    std::vector<std::optional<Plain>> defaults(allOptions().size());
    for (const OptionInfo &option : allOptions())
      defaults[unsigned(option.key)] = defaultValue(option);
    return defaults;
  }();
  const std::optional<Plain> &found = kDefaults[unsigned(key)];
  return found ? &*found : nullptr;
}

/// What the spec says, or the default; null where policy chooses.
const Plain *Variant::find(OptionKey key) const {
  if (auto found = point.problem.find(key); found != point.problem.end())
    return &found->second;
  if (auto found = schedule.find(key); found != schedule.end())
    return &found->second;
  return findDefault(key);
}

/// What says how much shared memory is kept.
Values Variant::plain() const {
  Values values;
  for (OptionKey key : {OptionKey::Tile, OptionKey::Warps, OptionKey::Mma, OptionKey::Stages, OptionKey::QIn})
    if (auto found = schedule.find(key); found != schedule.end())
      values.insert(*found);
  return values;
}

/// The variant as fagen's lowering takes it.
fagen::Variant Variant::lowerable() const {
  fagen::Variant made;
  made.target = point.target;
  made.problem.dtype = dtype();
  made.problem.accum = accum();
  made.problem.kvDType = KvDType(number(OptionKey::KvDType));
  made.problem.headDimQK = number(OptionKey::HeadDim);
  made.problem.headDimV = second(OptionKey::HeadDim);
  made.problem.mask = Mask(number(OptionKey::Mask));
  made.problem.lse = number(OptionKey::Lse) != 0;
  made.problem.invariant = number(OptionKey::Invariant) != 0;
  fagen::Schedule &taken = made.schedule;
  taken.tileRows = number(OptionKey::Tile);
  taken.tileKeys = second(OptionKey::Tile);
  taken.warps = number(OptionKey::Warps);
  taken.mma = mma();
  taken.copy = copy();
  taken.stages = number(OptionKey::Stages);
  taken.refill = refill();
  taken.swizzle = swizzle();
  taken.vectorBytes = number(OptionKey::Vector);
  taken.qIn = qIn();
  taken.pIn = pIn();
  taken.reduce = reduce();
  taken.roles = Roles(number(OptionKey::Roles));
  taken.overlap = overlap();
  taken.grid = grid();
  taken.rescale = RescalePolicy(number(OptionKey::Rescale));
  taken.gqa = Gqa(number(OptionKey::Gqa));
  taken.split = number(OptionKey::Split);
  for (const OptionInfo &option : allOptions())
    if (!option.constant.empty() && number(option.key) != option.defaultNumber())
      taken.numbers[option.key] = number(option.key);
  taken.keyWarps = keyWarps();
  taken.rowWarps = taken.warps / taken.keyWarps;
  return made;
}

uint64_t Variant::sharedBytes() const {
  const fagen::Variant made = lowerable();
  return Lowering().measure(&made).front().shared.total;
}

//===-- Warps
//------------------------------------------------------------------------------------------------------===//

bool isAvailable(const OptionValueInfo &value, const TargetInfo &target) {
  return !value.notYet && target.hasAll(value.needs);
}

bool hasBytes(const Values &problem) {
  const auto found = problem.find(OptionKey::KvDType);
  return found != problem.end() && KvDType(found->second.number) != KvDType::Same;
}

unsigned keyWarps(Mma mma, unsigned rows, unsigned warps) {
  const MmaInstrInfo &instr = firstMmaInstr(mma);
  if (!mmaFamily(mma).isCollective || rows % instr.slabRows != 0 || warps % instr.slabWarps != 0)
    return 1;
  const unsigned groups = warps / instr.slabWarps, rowGroups = std::min(groups, rows / instr.slabRows);
  return rowGroups == 0 ? 1 : groups / rowGroups;
}

/// wgmma: one box of a bulk copy has at most 256 rows, and registers are divided among at most three warp groups.
constexpr unsigned kMostWgmmaKeys = 256, kMostWgmmaWarps = 12;
/// One group of four warps has 64 query rows.
constexpr unsigned kWgmmaRowsOfAWarp = 16;

std::pair<unsigned, unsigned> largestTile(Mma mma) {
  const unsigned most = optionInfo(OptionKey::Tile).max;
  return mmaFamily(mma).unitWarps > 1 ? std::pair(kMostWgmmaWarps * kWgmmaRowsOfAWarp, kMostWgmmaKeys)
                                      : std::pair(most, most);
}

static bool canShare(Mma mma, unsigned rows, unsigned warps) {
  if (!mmaFamily(mma).isCollective)
    return rows % warps == 0;
  const MmaInstrInfo &instr = firstMmaInstr(mma);
  const unsigned slabs = rows / instr.slabRows, groups = warps / instr.slabWarps;
  return hasOpaqueFragments(mmaFamily(mma)) ? groups <= slabs && slabs % groups == 0
                                            : std::max(slabs, groups) % std::min(slabs, groups) == 0;
}

std::vector<unsigned> warpsFor(Mma mma, unsigned rows) {
  if (mmaFamily(mma).unitWarps > 1)
    return {rows / kWgmmaRowsOfAWarp};
  std::vector<unsigned> fitting;
  for (unsigned warps = firstMmaInstr(mma).slabWarps; warps <= optionInfo(OptionKey::Warps).max;
       warps += firstMmaInstr(mma).slabWarps)
    if (canShare(mma, rows, warps))
      fitting.push_back(warps);
  return fitting;
}

//===-- Rules
//------------------------------------------------------------------------------------------------------===//

/// Whether the key's values, in kernels of families of this kind, may break what stands in the tables.
static bool mayClash(const OptionInfo &option, bool isOfWarpGroups) {
  auto asks = [&](const GoesWith &rule) { return !isOfWarpGroups || rule.key != OptionKey::Mma; };
  return option.block == OptionBlock::Schedule &&
         (any_of(option.goesWith, asks) ||
          any_of(option.values, [&](const OptionValueInfo &value) { return any_of(value.goesWith, asks); }) ||
          any_of(allMmaFamilies(), [&](const MmaFamilyInfo &family) {
            return (family.unitWarps > 1) == isOfWarpGroups && family.taken(option.key);
          }));
}

/// Of numbers, each with a name here; then those of keys whose values go with others' values.
static std::vector<std::string> namesOfRules() {
  std::vector<std::string> names{"target", "not-yet", "places"};
  for (const bool isOfWarpGroups : {false, true}) {
    const std::string prefix = isOfWarpGroups ? "wgmma-" : "";
    for (StringRef rule : {"accum", "head-dim", "rows", "warps", "warp-group", "keys", "columns", "shared"})
      names.push_back(prefix + rule.str());
    for (const OptionInfo &option : allOptions())
      if (mayClash(option, isOfWarpGroups))
        names.push_back(prefix + option.name.str());
  }
  return names;
}

ArrayRef<StringRef> allRules() {
  static const std::vector<std::string> kNames = namesOfRules();
  static const std::vector<StringRef> kRules(kNames.begin(), kNames.end());
  return kRules;
}

/// What warp groups break in ways of their own has a name of its own, so that each is broken both ways.
static StringRef ofWarpGroups(StringRef rule) {
  for (StringRef own : allRules())
    if (StringRef name = own; name.consume_front("wgmma-") && name == rule)
      return own;
  return rule;
}

void Judge::require(bool holds, StringRef rule, OptionKey key) {
  if (!holds)
    breaches.push_back({variant.isOfWarpGroups() ? ofWarpGroups(rule) : rule, key});
}

// What the target cannot do is said first, and then nothing of what fagen cannot do.
void Judge::judgeValues() {
  for (const OptionInfo &option : allOptions()) {
    const bool isGiven = option.block == OptionBlock::Problem || variant.isGiven(option.key);
    if (option.type != OptionType::Enum || !isGiven)
      continue;
    const OptionValueInfo &value = *option.findValue(variant.number(option.key));
    const bool canTarget = variant.point.target->hasAll(value.needs);
    require(canTarget, "target", option.key);
    require(!canTarget || !value.notYet, "not-yet", option.key);
  }
}

void Judge::judgeProducts() {
  const MmaInstrInfo *instr = findMmaInstr(variant.mma(), variant.dtype(), variant.accum());
  require(variant.accum() == DType::F32 || (instr && instr->implemented), "accum", OptionKey::Accum);
  const unsigned multiple =
      std::max(variant.instr().headDimMultiple, hasBytes(variant.point.problem) ? kBytesColumns : 1);
  require(variant.number(OptionKey::HeadDim) % multiple == 0 && variant.second(OptionKey::HeadDim) % multiple == 0,
          "head-dim", OptionKey::HeadDim);
}

void Judge::judgeWarps() {
  const unsigned rows = variant.number(OptionKey::Tile), warps = variant.number(OptionKey::Warps);
  const MmaInstrInfo &instr = variant.instr();
  if (variant.family().isCollective && rows % instr.slabRows != 0)
    require(false, "rows", OptionKey::Tile);
  else if (warps % instr.slabWarps != 0)
    require(false, "warp-group", OptionKey::Warps);
  else if (hasOpaqueFragments(variant.family()) && warps * instr.slabRows > rows)
    require(false, "warp-group", OptionKey::Warps);
  else
    require(canShare(variant.mma(), rows, warps), "warps", OptionKey::Tile);
  require(variant.second(OptionKey::Tile) % (instr.keyMultiple * variant.keyWarps()) == 0, "keys", OptionKey::Tile);
}

/// Which values go with which stands once, in the tables; here it is only told where they are broken.
void Judge::judgeGoesWith() {
  const std::vector<Clash> clashes = variant.ask([](const KeyNumbers &numbers) { return findClashes(numbers); });
  for (const Clash &clash : clashes)
    require(false, clash.option->name, clash.blamed);
}

void Judge::judgePassNumbers() {
  for (const OptionInfo &option : allOptions())
    if (!option.constant.empty())
      require(option.columnsEach * variant.number(option.key) <= variant.number(OptionKey::HeadDim), "columns",
              option.key);
}

/// What keys ask of numbers, and of what no table lists.
void Judge::judgeNumbers() {
  require(variant.refill() != Refill::Late || variant.number(OptionKey::Stages) > 1, "refill", OptionKey::Refill);
  require(variant.number(OptionKey::Split) <= 1 || variant.number(OptionKey::Invariant) == 0, "split",
          OptionKey::Split);
  const bool isWide = variant.number(OptionKey::HeadDim) % 16 == 0 && variant.second(OptionKey::HeadDim) % 16 == 0;
  require(variant.swizzle() != Swizzle::Xor || isWide || variant.family().isCollective, "swizzle", OptionKey::Swizzle);
  require(RescalePolicy(variant.number(OptionKey::Rescale)) != RescalePolicy::None, "rescale",
          OptionKey::Rescale); // masks bound no scores
  if (variant.copy() == Copy::Tma)
    judgeBoxes();
  if (!variant.isOfWarpGroups())
    return;
  const bool turns = variant.overlap() == Overlap::Both || variant.overlap() == Overlap::Pingpong;
  require(!turns || variant.number(OptionKey::Warps) >= 8, "overlap", OptionKey::Overlap);
  judgeWarpGroupTile();
}

/// What bulk copies bring to warps that multiply by themselves.
void Judge::judgeBoxes() {
  const bool isOnTarget =
      variant.point.target->hasAll(optionInfo(OptionKey::Copy).findValue(unsigned(Copy::Tma))->needs);
  if (variant.family().unitWarps > 1 || !isOnTarget)
    return;
  require(variant.number(OptionKey::Tile) <= 256 && variant.second(OptionKey::Tile) <= 256, "keys", OptionKey::Tile);
  require(variant.keyWarps() == 1, "warps", OptionKey::Warps);
  require(variant.number(OptionKey::HeadDim) % 32 == 0 && variant.second(OptionKey::HeadDim) % 32 == 0, "head-dim",
          OptionKey::HeadDim);
}

void Judge::judgeWarpGroupTile() {
  const unsigned rows = variant.number(OptionKey::Tile), warps = variant.number(OptionKey::Warps);
  const bool isWhole = rows % variant.instr().slabRows == 0;
  require(variant.second(OptionKey::Tile) <= kMostWgmmaKeys, "keys", OptionKey::Tile);
  require(warps <= kMostWgmmaWarps && (!isWhole || kWgmmaRowsOfAWarp * warps == rows), "warps", OptionKey::Warps);
}

// Copies of K and V together overwrite what a step has read: nobody may issue them before all have done so.
std::optional<std::vector<std::vector<StringRef>>> Variant::neededPlaces() const {
  if (Roles(number(OptionKey::Roles)) == Roles::Specialized || qIn() == OperandPlace::Registers ||
      reduce() == Reduce::Shared || keyWarps() > 1)
    return std::nullopt;
  std::vector<std::vector<StringRef>> places = {{"after_load"}};
  if (!family().keepsResults) // P is handed from the lanes that made it to those that read it
    places.push_back({"after_exp"});
  if (hasOpaqueFragments(family())) // nobody may write S over P V before all lanes have it
    places.push_back({"after_pv"});
  if (hasOpaqueFragments(family()) && refill() != Refill::Split)
    places.push_back({"after_scores"});
  if (!hasOpaqueFragments(family()) && refill() == Refill::Joint)
    places.push_back({"after_pv", "after_tile"});
  return places;
}

void Judge::judgePlaces() {
  if (BarrierPolicy(variant.number(OptionKey::Barriers)) != BarrierPolicy::At ||
      Roles(variant.number(OptionKey::Roles)) == Roles::Specialized)
    return;
  const auto groups = variant.neededPlaces();
  const std::vector<std::string> &names = variant.names(OptionKey::Barriers);
  require(groups && all_of(*groups,
                           [&](const std::vector<StringRef> &group) {
                             return any_of(group, [&](StringRef place) { return is_contained(names, place); });
                           }),
          "places", OptionKey::Barriers);
}

/// Only what breaks no rule can be lowered. Of a schedule with other mistakes fagen looks at what says how much is
/// kept, with defaults in the place of the rest.
void Judge::judgeShared() {
  if (breaches.empty())
    return require(variant.sharedBytes() <= variant.point.target->sharedPerBlock, "shared", OptionKey::Tile);
  const Values plain = variant.plain();
  if (plain.size() == variant.size())
    return;
  const std::vector<Breach> left = findBreaches(variant.point, plain);
  if (left.size() == 1 && left.front().key == OptionKey::Tile)
    breaches.push_back(left.front());
}

std::vector<Breach> Judge::runUnmade() {
  judgeValues();
  judgeProducts();
  judgeWarps();
  judgeGoesWith();
  judgePassNumbers();
  judgeNumbers();
  judgePlaces();
  return breaches;
}

std::vector<Breach> Judge::run() {
  runUnmade();
  judgeShared();
  return std::move(breaches);
}

std::vector<Breach> findBreaches(const Point &point, const Values &schedule) {
  const Variant variant(point, schedule);
  return Judge(variant).run();
}

bool mayBreak(StringRef rule, const Point &point, const Values &schedule) {
  const Variant variant(point, schedule);
  return rule.ends_with("shared") ||
         any_of(Judge(variant).runUnmade(), [&](const Breach &breach) { return breach.rule == rule; });
}

uint64_t sharedBytes(const Point &point, const Values &schedule) { return Variant(point, schedule).sharedBytes(); }

std::optional<std::vector<std::vector<StringRef>>> neededPlaces(const Point &point, const Values &schedule) {
  return Variant(point, schedule).neededPlaces();
}

} // namespace fagen::random

// fagen: what the keys of one variant must satisfy together, stated a second time.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Rules.h"

#include "fagen/Lower/Lower.h"
#include "fagen/Target/MmaInstrs.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace fagen::random {

namespace {

/// A schedule at a point, every key with its value.
class Variant {
public:
  Variant(const Point &point, const Values &schedule) : point(point), schedule(schedule) {}

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
  bool isOfWarpGroups() const { return family().isAsynchronous && isOnTarget(); }
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
  void judgeOperands();
  void judgePassNumbers();
  void judgeCopies();
  void judgeSplit();
  void judgeSwizzle();
  void judgeRescale();
  void judgeWarpGroups();
  void judgeWarpGroupTile();
  void judgeShared();
  void judgePlaces();

  const Variant &variant;
  std::vector<Breach> breaches;
};

} // namespace

//===-- Values of all keys
//-----------------------------------------------------------------------------------------===//

/// Keys that the spec leaves to fagen (docs/Options.md).
unsigned Variant::policy(OptionKey key) const {
  switch (key) {
  case OptionKey::Copy: {
    if (family().isAsynchronous)
      return unsigned(Copy::Tma);
    if (number(OptionKey::Vector) != 16)
      return unsigned(Copy::LdSt);
    unsigned best = unsigned(Copy::LdSt);
    for (const OptionValueInfo &value : optionInfo(key).values)
      if (isAvailable(value, *point.target) && Copy(value.number) != Copy::Tma)
        best = value.number;
    return best;
  }
  case OptionKey::Swizzle:
    return unsigned(family().isAsynchronous        ? Swizzle::B128
                    : hasOpaqueFragments(family()) ? Swizzle::Pad
                    : family().keepsResults        ? Swizzle::Xor
                                                   : Swizzle::None);
  case OptionKey::Refill:
    return unsigned(family().isCollective ? Refill::Split : Refill::Joint);
  case OptionKey::QIn:
    return unsigned(OperandPlace::Shared);
  case OptionKey::PIn:
    return unsigned(family().keepsResults ? OperandPlace::Registers : OperandPlace::Shared);
  case OptionKey::Roles:
    return unsigned(family().isAsynchronous ? Roles::Specialized : Roles::Unified);
  default:
    return 0;
  }
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
  fagen::Variant made = lowerable();
  Lowering().measure(&made);
  return made.schedule.shared.total;
}

//===-- Warps
//------------------------------------------------------------------------------------------------------===//

bool isAvailable(const OptionValueInfo &value, const TargetInfo &target) {
  return !value.notYet && target.hasAll(value.needs);
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
  return mmaFamily(mma).isAsynchronous ? std::pair(kMostWgmmaWarps * kWgmmaRowsOfAWarp, kMostWgmmaKeys)
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
  if (mmaFamily(mma).isAsynchronous)
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

ArrayRef<StringRef> allRules() {
  static const StringRef kRules[] = {"target",
                                     "not-yet",
                                     "accum",
                                     "head-dim",
                                     "rows",
                                     "warps",
                                     "warp-group",
                                     "keys",
                                     "q-in",
                                     "p-in",
                                     "pass-number",
                                     "reduce",
                                     "copy",
                                     "refill",
                                     "rescale",
                                     "split",
                                     "vector",
                                     "swizzle",
                                     "shared",
                                     "places",
                                     "gqa",
                                     "roles",
                                     "grid",
                                     "overlap",
                                     "wgmma-accum",
                                     "wgmma-head-dim",
                                     "wgmma-rows",
                                     "wgmma-warps",
                                     "wgmma-warp-group",
                                     "wgmma-keys",
                                     "wgmma-q-in",
                                     "wgmma-p-in",
                                     "wgmma-pass-number",
                                     "wgmma-reduce",
                                     "wgmma-copy",
                                     "wgmma-refill",
                                     "wgmma-rescale",
                                     "wgmma-split",
                                     "wgmma-vector",
                                     "wgmma-swizzle",
                                     "wgmma-shared",
                                     "wgmma-barriers",
                                     "wgmma-cluster",
                                     "wgmma-roles",
                                     "wgmma-grid",
                                     "wgmma-overlap"};
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
  const unsigned multiple = variant.instr().headDimMultiple;
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

void Judge::judgeOperands() {
  const MmaFamilyInfo &family = variant.family();
  require((family.isCollective && !family.isAsynchronous) || variant.qIn() == OperandPlace::Shared, "q-in",
          OptionKey::QIn);
  require(family.keepsResults || variant.pIn() == OperandPlace::Shared, "p-in", OptionKey::PIn);
  const bool isHeld = family.keepsResults && (!family.isAsynchronous || variant.isOnTarget());
  require(!isHeld || variant.pIn() == OperandPlace::Registers, "p-in", OptionKey::PIn);
  require(!family.isCollective || variant.reduce() == Reduce::Warp, "reduce", OptionKey::Reduce);
}

void Judge::judgePassNumbers() {
  for (const OptionInfo &option : allOptions()) {
    if (option.constant.empty())
      continue;
    const unsigned number = variant.number(option.key);
    const bool isOfMma = option.onlyWith.empty() || option.onlyWith == toString(variant.mma()) || !variant.isOnTarget();
    require(isOfMma || number == option.defaultNumber(), "pass-number", option.key);
    require(option.columnsEach * number <= variant.number(OptionKey::HeadDim), "pass-number", option.key);
  }
}

void Judge::judgeCopies() {
  const bool isAsynchronous = variant.family().isAsynchronous, isBulk = variant.copy() == Copy::Tma;
  const bool isOnTarget = variant.isOnTarget();
  const OptionValueInfo &copies = *optionInfo(OptionKey::Copy).findValue(unsigned(variant.copy()));
  const bool isCopied = !variant.isGiven(OptionKey::Copy) || variant.point.target->hasAll(copies.needs);
  require(!isCopied || !isOnTarget || isBulk == isAsynchronous, "copy", OptionKey::Copy);
  require(variant.copy() == Copy::LdSt || variant.number(OptionKey::Vector) == 16, "vector", OptionKey::Vector);
  require(Gqa(variant.number(OptionKey::Gqa)) == Gqa::Separate || !isBulk || !isOnTarget, "gqa", OptionKey::Gqa);
  require(variant.refill() != Refill::Late || variant.number(OptionKey::Stages) > 1, "refill", OptionKey::Refill);
}

/// What CTAs share: the keys of a tile of query rows, or the tiles of K and V.
void Judge::judgeSplit() {
  const MmaFamilyInfo &family = variant.family();
  const unsigned split = variant.number(OptionKey::Split);
  const bool canSplit = family.keepsResults && (!family.isAsynchronous || variant.grid() == Grid::Tiles);
  require(split == 1 || canSplit, "split", OptionKey::Split);
  require(split <= 1 || variant.number(OptionKey::Invariant) == 0, "split", OptionKey::Split);
  const bool canCluster = !variant.isOfWarpGroups() || variant.grid() == Grid::Persistent;
  require(variant.number(OptionKey::Cluster) == 1 || canCluster, "cluster", OptionKey::Cluster);
  const bool canSettle =
      !variant.isOfWarpGroups() || RescalePolicy(variant.number(OptionKey::Rescale)) == RescalePolicy::Optimistic;
  require(variant.number(OptionKey::SettleApart) == 0 || canSettle, "settle_apart", OptionKey::SettleApart);
  const bool isRotated = variant.overlap() == Overlap::Intra || variant.overlap() == Overlap::Both;
  require(variant.number(OptionKey::HalveMasked) == 0 || isRotated || !variant.isOfWarpGroups(), "halve_masked",
          OptionKey::HalveMasked);
}

void Judge::judgeSwizzle() {
  const MmaFamilyInfo &family = variant.family();
  if (variant.isGiven(OptionKey::Swizzle) && variant.isOnTarget())
    require((variant.swizzle() == Swizzle::B128) == family.isAsynchronous, "swizzle", OptionKey::Swizzle);
  if (variant.swizzle() != Swizzle::Xor || variant.isOfWarpGroups())
    return;
  const bool isWide = variant.number(OptionKey::HeadDim) % 16 == 0 && variant.second(OptionKey::HeadDim) % 16 == 0;
  require(!hasOpaqueFragments(family) && (isWide || family.isCollective), "swizzle", OptionKey::Swizzle);
}

void Judge::judgeRescale() {
  const RescalePolicy policy = RescalePolicy(variant.number(OptionKey::Rescale));
  require(policy == RescalePolicy::Always || variant.accum() == DType::F32, "rescale", OptionKey::Rescale);
  require(policy != RescalePolicy::None, "rescale", OptionKey::Rescale); // masks bound no scores
  const bool runsBesideProducts = variant.overlap() == Overlap::Intra || variant.overlap() == Overlap::Both;
  require(policy != RescalePolicy::Optimistic || !variant.isOnTarget() ||
              (variant.family().isAsynchronous && runsBesideProducts),
          "rescale", OptionKey::Rescale);
}

// A schedule of warp groups takes one value each of many keys; no other schedule takes the values that are theirs.
void Judge::judgeWarpGroups() {
  if (!variant.isOnTarget())
    return;
  const Roles roles = Roles(variant.number(OptionKey::Roles));
  const bool turns = variant.overlap() == Overlap::Both || variant.overlap() == Overlap::Pingpong;
  if (!variant.family().isAsynchronous) {
    require(roles == Roles::Unified, "roles", OptionKey::Roles);
    require(variant.grid() == Grid::Tiles, "grid", OptionKey::Grid);
    require(variant.overlap() == Overlap::None, "overlap", OptionKey::Overlap);
    return;
  }
  require(roles == Roles::Specialized, "roles", OptionKey::Roles);
  require(variant.refill() == Refill::Split, "refill", OptionKey::Refill);
  require(BarrierPolicy(variant.number(OptionKey::Barriers)) == BarrierPolicy::Minimal, "barriers",
          OptionKey::Barriers);
  require(variant.grid() != Grid::Persistent || Mask(variant.number(OptionKey::Mask)) == Mask::None, "grid",
          OptionKey::Grid);
  require(!turns || variant.number(OptionKey::Warps) >= 8, "overlap", OptionKey::Overlap);
  judgeWarpGroupTile();
}

void Judge::judgeWarpGroupTile() {
  const unsigned rows = variant.number(OptionKey::Tile), warps = variant.number(OptionKey::Warps);
  const bool isWhole = rows % variant.instr().slabRows == 0;
  require(variant.second(OptionKey::Tile) <= kMostWgmmaKeys, "keys", OptionKey::Tile);
  require(warps <= kMostWgmmaWarps && (!isWhole || kWgmmaRowsOfAWarp * warps == rows), "warps", OptionKey::Warps);
}

// Copies of K and V together overwrite what a step has read: nobody may issue them before all have done so.
std::optional<std::vector<std::vector<StringRef>>> Variant::neededPlaces() const {
  if (family().isAsynchronous || qIn() == OperandPlace::Registers || reduce() == Reduce::Shared || keyWarps() > 1)
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
  if (BarrierPolicy(variant.number(OptionKey::Barriers)) != BarrierPolicy::At || variant.isOfWarpGroups())
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
  judgeOperands();
  judgePassNumbers();
  judgeCopies();
  judgeSplit();
  judgeSwizzle();
  judgeRescale();
  judgeWarpGroups();
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

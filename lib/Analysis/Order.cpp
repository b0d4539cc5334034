// fagen: collects what executions of all runs of a kernel's roles tell.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Analysis/Order.h"
#include "fagen/IR/GridQueries.h"
#include "fagen/IR/Patterns.h"
#include "fagen/IR/Queries.h"
#include "fagen/IR/Steering.h"
#include "fagen/IR/Sync.h"

#include "execution/DistinctRuns.h"
#include "execution/FragmentOrder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <map>

using namespace fagen;
using namespace fagen::ir;

/// Whether barriers, copy_wait and a single role leave the op without meaning.
static bool isOfRoles(const Op &op) {
  const SyncInfo &sync = syncOf(op);
  return isBetweenRoles(sync.done) || isBetweenRoles(sync.releases) || isBetweenRoles(sync.acquires) ||
         sync.needsFence == Means::InitFence;
}

bool fagen::needsOrder(const Kernel &kernel) {
  bool isNeeded = kernel.roles.size() != 1;
  for (const Role &role : kernel.roles)
    walk(role.body, [&](const Op &op) { isNeeded |= isOfRoles(op); });
  return isNeeded;
}

static HazardKind hazardKindOf(const Access &first, const Access &second) {
  if (first.writes && second.reads)
    return HazardKind::Raw;
  return first.writes ? HazardKind::Waw : HazardKind::War;
}

/// Turns of warps, each compared with every access in every slot by every warp: more take longer than some seconds.
static constexpr uint64_t kMaxWork = uint64_t(1) << 39;
static constexpr unsigned kMaxSlots = 64;

static uint64_t workOf(const Kernel &kernel, llvm::ArrayRef<const Timeline *> timelines, const AccessTable &table) {
  uint64_t turns = 0, instances = 0;
  for (const Timeline *timeline : timelines)
    turns += uint64_t(timeline->length) * timeline->warps;
  for (const Access &access : table.accesses())
    instances += access.buffer->stages;
  const uint64_t ctas = kernel.grid.cluster;
  return turns * ctas * (instances + 1) * ctas * (kernel.threads / 32);
}

namespace {

/// What executions of all runs tell.
class Findings {
public:
  Findings(ExecutionPlan &plan, const TimelinePool &pool, llvm::function_ref<std::string(const Op *)> nameOf)
      : plan(plan), pool(pool), nameOf(nameOf) {
    pairs.resize(plan.accesses().size() * plan.accesses().size(), -1);
  }

  void execute(AccessTable &table, llvm::ArrayRef<Course> courses, const DistinctRuns &runs, bool isTurnByTurn) {
    auto onMeet = [this](const Access &first, const Access &second, int64_t firstPosition, int64_t secondPosition,
                         llvm::StringRef open,
                         Known by) { meet(first, second, firstPosition, secondPosition, open, by); };
    auto onFail = [this](const Op &op, std::string message) { add(defects, op, std::move(message)); };
    auto onMisread = [this](const Op &op, std::string message) { add(misreads, op, std::move(message)); };
    const ExecutionObserver observer{onMeet, onFail, onMisread, nameOf};
    FragmentOrder fragments(plan, table, observer);
    for (const Course &course : courses) {
      steps = &course.steps;
      fragments.follow(course.role, course.places);
    }
    Execution execution(plan, pool, observer);
    if (!isTurnByTurn)
      return executeOriginals(runs, execution);
    for (unsigned run = 0; run < runs.size(); ++run) {
      steps = &runs.steps(run);
      runs.executeTurnByTurn(run, execution);
    }
  }

  bool areSound() const { return isInOrder() && misreads.empty(); }

  /// By first and second access.
  std::vector<OrderedPair> takePairs() {
    std::vector<OrderedPair> sorted;
    for (int number : pairs)
      if (number >= 0)
        sorted.push_back(std::move(met[number]));
    return sorted;
  }
  /// What lies in slots when somebody reads them is known where accesses are in order.
  std::vector<OrderDefect> takeDefects() { return std::move(isInOrder() ? misreads : defects); }

private:
  bool isInOrder() const {
    return defects.empty() && llvm::all_of(met, [](const OrderedPair &pair) { return pair.open.empty(); });
  }

  /// And of the runs that do the same as one of them, those that have more to tell.
  void executeOriginals(const DistinctRuns &runs, Execution &execution) {
    std::optional<unsigned> last;
    std::vector<std::vector<DistinctRuns::Meeting>> meetings(runs.size()); // of originals
    std::vector<unsigned> repeats(runs.size());                            // to come
    for (unsigned run = 0; run < runs.size(); ++run) {
      steps = &runs.steps(run);
      const unsigned original = runs.originalOf(run);
      const bool isKnown = original != run && !hasNews(runs, run, meetings[original]);
      if (original != run && --repeats[original] == 0)
        meetings[original] = {};
      if (isKnown)
        continue;
      runs.execute(run, last, execution);
      last = run;
      if (repeats[run] = runs.repeatsOf(run); repeats[run] != 0)
        meetings[run] = runs.meetingsOf(run, execution.encounters());
    }
  }

  bool hasNews(const DistinctRuns &runs, unsigned run, llvm::ArrayRef<DistinctRuns::Meeting> meetings) const {
    bool isNews = false;
    runs.forEachNewMeeting(run, meetings, [&](const Access &first, const Access &second, int64_t from, int64_t to) {
      const int number = pairs[size_t(first.index) * plan.accesses().size() + second.index];
      const std::optional<int64_t> distance = distanceOf(first, second, from, to);
      isNews |= number < 0 || (distance && *distance < met[number].distance.value_or(*distance + 1));
    });
    return isNews;
  }

  /// Where both are on one ring.
  static std::optional<int64_t> distanceOf(const Access &first, const Access &second, int64_t from, int64_t to) {
    int64_t distance = 0;
    const bool isKnown =
        first.buffer == second.buffer && first.buffer->isRing && !llvm::SubOverflow(to, from, distance);
    return isKnown ? std::optional(distance) : std::nullopt;
  }

  void meet(const Access &first, const Access &second, int64_t firstPosition, int64_t secondPosition,
            llvm::StringRef open, Known by) {
    int &number = pairs[size_t(first.index) * plan.accesses().size() + second.index];
    if (number < 0) {
      number = int(met.size());
      met.push_back({hazardKindOf(first, second), first, second, std::nullopt, "", *steps, plan.named(by.release()),
                     plan.named(by.acquire())});
    }
    OrderedPair &pair = met[number];
    if (pair.open.empty() && !open.empty()) {
      pair.open = open.str();
      pair.steps = *steps;
    }
    if (const std::optional<int64_t> distance = distanceOf(first, second, firstPosition, secondPosition))
      pair.distance = std::min(pair.distance.value_or(*distance), *distance);
  }

  void add(std::vector<OrderDefect> &list, const Op &op, std::string message) {
    if (known.try_emplace({&op, message.substr(0, message.find_first_of("0123456789"))}, 0).second)
      list.push_back({&op, std::move(message), *steps});
  }

  ExecutionPlan &plan;
  const TimelinePool &pool;
  llvm::function_ref<std::string(const Op *)> nameOf;
  const std::string *steps = nullptr; ///< of the run
  std::vector<int> pairs;             ///< by first and second access: where in `met`
  std::vector<OrderedPair> met;
  std::vector<OrderDefect> defects, misreads;
  std::map<std::pair<const Op *, std::string>, unsigned> known; ///< defects: one of a kind and op is enough
};

} // namespace

OrderInfo::OrderInfo(const Kernel &kernel) {
  for (const Role &role : kernel.roles) {
    roles.push_back(&role);
    numberings.emplace_back(role);
  }
  AccessTable table(kernel, roles);
  if (!checkAccesses(kernel, table) || !checkCluster(kernel))
    return;

  ExecutionPlan plan(kernel, roles, numberings, table);
  std::vector<const Points *> points;
  for (const Points &numbering : numberings)
    points.push_back(&numbering);
  uint64_t work = 0;
  TimelinePool pool;
  std::vector<Course> courses;
  DistinctRuns runs(plan, pool);
  auto hasEvents = [&](unsigned role, unsigned point) { return !plan.op(role, point).isIdle; };
  auto isOfCourses = [&](unsigned role, unsigned point) { return plan.op(role, point).isOfFragments; };
  auto meets = [&](unsigned role, unsigned point) { return plan.op(role, point).meetsLanes; };
  auto onlyMeets = [&](unsigned role, unsigned point) { return plan.op(role, point).onlyMeetsLanes; };
  auto addCourse = [&](Course course) { courses.push_back(std::move(course)); };
  auto addRun = [&](const Run &run) {
    work += workOf(kernel, run.timelines, table);
    if (work <= kMaxWork)
      runs.add(run);
  };
  forEachRun(kernel, roles, points, pool, why, {hasEvents, isOfCourses, meets, onlyMeets, addCourse, addRun});
  if (why.empty() && work > kMaxWork)
    why = kTooManySteps;

  auto name = [this](const Op *op) { return nameOf(op); };
  auto findings = std::make_unique<Findings>(plan, pool, name);
  findings->execute(table, courses, runs, /*isTurnByTurn=*/false);
  if (!findings->areSound()) { // what is said of a run that fails depends on who is executed first
    findings = std::make_unique<Findings>(plan, pool, name);
    findings->execute(table, courses, runs, /*isTurnByTurn=*/true);
  }
  wrong = findings->takeDefects();
  found = findings->takePairs();
}

/// Whether another op may reach what the access does.
static bool meetsOthers(AccessTable &table, const Access &a) {
  return llvm::any_of(table.accesses(), [&](const Access &b) {
    return b.buffer == a.buffer && b.op != a.op &&
           table.conflict(table.cellOf(a, 0), table.cellOf(b, 0)).scope != Scope::None;
  });
}

/// Of buffers that accesses do not leave.
static bool lieApart(const Buffer &a, const Buffer &b) {
  return a.offset && b.offset && (*a.offset + a.bytes() <= *b.offset || *b.offset + b.bytes() <= *a.offset);
}

/// Footprints that cannot be; mbarriers whose bytes somebody takes for something else.
bool OrderInfo::checkAccesses(const Kernel &kernel, AccessTable &table) {
  unsigned slots = 0;
  for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
    slots += buffer->type == ElementType::MBarrier ? buffer->stages.number() : 0;
  if (slots > kMaxSlots) {
    why = "more than " + std::to_string(kMaxSlots) + " mbarriers";
    return false;
  }
  for (const Access &access : table.accesses())
    if (table.leavesBuffer(access)) {
      why = nameOf(access.op) + " reaches over the end of %" + access.buffer->name +
            ", whose shape does not suit the kernel's constants";
      return false;
    }
  for (const Access &a : table.accesses()) {
    if (a.writes && table.meetsItself(a))
      racing.push_back(a);
    if (a.buffer->space == Space::Global && syncOf(*a.op).done == Means::StoreGroups && meetsOthers(table, a))
      why = nameOf(a.op) + " writes %" + a.buffer->name + ", which the kernel uses again; that is not analysed";
    if (a.buffer->type != ElementType::MBarrier)
      continue;
    for (const Access &b : table.accesses())
      for (unsigned i = 0; i < a.buffer->stages && !lieApart(*a.buffer, *b.buffer); ++i)
        for (unsigned j = 0; j < b.buffer->stages && b.buffer != a.buffer; ++j)
          if (table.conflict(table.cellOf(a, i), table.cellOf(b, j)).scope != Scope::None)
            why = "%" + a.buffer->name + " is an mbarrier whose bytes %" + b.buffer->name + " shares";
  }
  return why.empty();
}

/// Executions give all CTAs of a cluster the same steps.
bool OrderInfo::checkCluster(const Kernel &kernel) {
  if (!kernel.grid.hasClusters())
    return true;
  const llvm::StringRef fastest = fastestOf(kernel);
  llvm::StringSet<> names;
  names.insert(fastest);
  names = withFollowers(kernel, std::move(names));
  for (const Let *let : steeringLets(kernel, roles).lets)
    if (names.contains(let->name))
      why = "let " + let->name + " depends on " + fastest.str() +
            ": CTAs of a cluster may take different numbers of steps";
  for (const Role *role : roles)
    walk(role->body, [&](const Op &op) {
      if (op.kind == OpKind::FetchTile)
        why = nameOf(&op) + " draws tiles for a CTA: those of a cluster may take different numbers of steps";
    });
  if (kernel.threads % (32 * ClockShape::kGroupWarps) != 0)
    why = "CTAs of a cluster are not whole groups of four warps";
  return why.empty();
}

std::string OrderInfo::nameOf(const Op *op) const {
  for (unsigned role = 0; role < roles.size(); ++role) {
    const unsigned point = numberings[role].before(op);
    if (numberings[role].size() > point && numberings[role][point].op == op)
      return roles[role]->name + "." + numberings[role].nameOf(op);
  }
  return titleOf(*op).str();
}

std::vector<const OrderedPair *> OrderInfo::orderedBy(const Op &op) const {
  std::vector<const OrderedPair *> pairs;
  for (const OrderedPair &pair : found) {
    auto isSame = [&](const OrderedPair *other) {
      return other->kind == pair.kind && other->source.buffer == pair.source.buffer &&
             other->source.op == pair.source.op && other->sink.op == pair.sink.op;
    };
    if ((pair.release == &op || pair.acquire == &op) && llvm::none_of(pairs, isSame))
      pairs.push_back(&pair);
  }
  return pairs;
}

std::string OrderInfo::describe(const OrderedPair &pair) const {
  std::string text = toString(pair.kind).str() + " " + pair.source.buffer->name;
  if (pair.sink.buffer != pair.source.buffer)
    text += "/" + pair.sink.buffer->name;
  text += ": " + nameOf(pair.source.op) + " -> " + nameOf(pair.sink.op);
  if (pair.distance)
    text += " distance " + std::to_string(*pair.distance);
  if (!pair.open.empty())
    return text + ", open: " + pair.open + (pair.steps.empty() ? "" : " (" + pair.steps + ")");
  text += ", ordered";
  if (pair.release)
    text += " by " + nameOf(pair.release);
  if (pair.acquire && pair.acquire != pair.release)
    text += (pair.release ? " and " : " by ") + nameOf(pair.acquire);
  return text;
}

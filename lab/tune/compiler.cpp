// fagen: the compiler as the tuner uses it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler.h"
#include "lab/support/child_process.h"
#include "lab/support/json_file.h"
#include "lab/support/write_file.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

namespace fagen::lab::tune {

namespace fs = std::filesystem;

static constexpr double kCompilerSeconds = 120;

std::string hashOf(const std::string &text) {
  uint64_t value = 0xcbf29ce484222325;
  for (unsigned char letter : text)
    value = (value ^ letter) * 0x100000001b3;
  return fmt::format("{:016x}", value);
}

/// FAGEN, or next to this executable, or on PATH.
static std::string findCompiler() {
  if (const char *named = std::getenv("FAGEN"))
    return named;
  std::error_code error;
  fs::path sibling = fs::read_symlink("/proc/self/exe", error).parent_path() / "fagen";
  return fs::exists(sibling, error) ? sibling.string() : "fagen";
}

Compiler::Compiler(fs::path spec, std::string target)
    : spec(std::move(spec)), target(std::move(target)), executable(findCompiler()) {
  std::string errors, version = run({"--version"}, kCompilerSeconds, errors);
  if (version.empty())
    throw UserError(fmt::format("{} cannot be started; FAGEN names another compiler", executable));
  std::error_code error;
  std::string code = fs::exists(executable, error) ? hashOf(readText(executable)) : "";
  identity = fmt::format("{} {}", version.substr(0, version.find('\n')), code);
}

std::string Compiler::specHash() const { return hashOf(readText(spec) + target); }

/// What the compiler said of the command line, without its name: the caller says its own.
static std::string withoutPrefix(const std::string &errors) {
  constexpr std::string_view kPrefix = "fagen: error: ";
  const size_t begin = errors.starts_with(kPrefix) ? kPrefix.size() : 0;
  return errors.substr(begin, errors.find_last_not_of('\n') + 1 - begin);
}

/// The standard output; empty, and `errors` set, when it failed.
std::string Compiler::run(const std::vector<std::string> &arguments, double seconds, std::string &errors) const {
  std::vector<std::string> words = {executable};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::string text;
  ChildOutcome outcome = runChild(words, seconds, [&](const std::string &line) { text += line + '\n'; });
  if (outcome.succeeded())
    return text.empty() ? "\n" : text;
  errors = outcome.timedOut ? fmt::format("the compiler took more than {:.0f} s", seconds)
           : outcome.signal ? fmt::format("the compiler ended by signal {}", outcome.signal)
                            : outcome.errors;
  return {};
}

void Compiler::compileSpec(const fs::path &directory) const {
  std::vector<std::string> arguments = {spec.string(), "-o", directory.string()};
  if (!target.empty())
    arguments.push_back("--target=" + target);
  std::string errors;
  if (run(arguments, kCompilerSeconds, errors).empty())
    throw UserError(withoutPrefix(errors));
}

static std::string gatesWithoutTime(const KernelSet &set) {
  std::string text;
  for (const Gate &gate : set.gates())
    if (gate.name != "time")
      text += fmt::format("    {};\n", gate.text);
  return text.empty() ? "" : "  require {\n" + text + "  }\n";
}

/// Every key of the schedule as a spec writes it; the tile as rows and keys.
static std::map<std::string, std::string> shippedValues(const Field &schedule) {
  static const std::set<std::string> kNoKeys = {"name",      "implicit",       "row_warps",
                                                "key_warps", "barrier_places", "exp_mixed"};
  std::map<std::string, std::string> values;
  for (const std::string &key : schedule.keys())
    if (!kNoKeys.count(key) && key != "tile" && key != "mma")
      values[key] = schedule[key.c_str()].isText() ? schedule[key.c_str()].text()
                                                   : std::to_string(schedule[key.c_str()].integer());
  const std::vector<Field> tile = schedule["tile"].items();
  if (tile.size() != 2)
    schedule["tile"].fail("has " + std::to_string(tile.size()) + " numbers; rows and keys are two");
  values["rows"] = std::to_string(tile[0].number());
  values["keys"] = std::to_string(tile[1].number());
  values["vector"] += " B";
  if (schedule.has("exp_mixed"))
    values["exp"] = fmt::format("mixed({})", schedule["exp_mixed"].number());
  if (schedule["mma"].text() == "wgmma") // of what the compiler leaves out of a manifest, axes of this family
    values.insert({{"cluster", "1"}, {"q_held", "0"}});
  if (schedule.has("barrier_places")) {
    std::vector<std::string> places;
    for (const Field &place : schedule["barrier_places"].items())
      places.push_back(place.text());
    values["barriers"] = fmt::format("at({})", fmt::join(places, ", "));
  }
  return values;
}

static BaseKernel readBase(const KernelSet &set, const fagen_row &row) {
  const Field entry = set.entry(row), schedule = entry["plan"]["schedule"];
  BaseKernel base;
  base.kernel = set.table()->kernel;
  base.target = row.target;
  base.variant = row.variant;
  base.require = gatesWithoutTime(set);
  base.headDimQK = entry["head_dim_qk"].number<int>();
  base.headDimV = entry["head_dim_v"].number<int>();
  base.lse = entry["lse"].integer() != 0;
  base.accum = entry["accum"].text();
  base.dtype = entry["dtype"].text();
  base.mask = entry["mask"].text();
  base.problem = fmt::format("pass = {}; dtype = {}; accum = {}; head_dim = {}; mask = {}; lse = {};",
                             entry["pass"].text(), base.dtype, base.accum,
                             base.headDimQK == base.headDimV ? fmt::format("{}", base.headDimQK)
                                                             : fmt::format("{} : {}", base.headDimQK, base.headDimV),
                             base.mask, base.lse ? "on" : "off");
  base.schedule = schedule["name"].text();
  base.mma = schedule["mma"].text();
  base.shipped = shippedValues(schedule);
  return base;
}

BaseKernel Compiler::baseOf(const KernelSet &set, const fagen_row &row) {
  try {
    return readBase(set, row);
  } catch (const FieldError &error) {
    throw UserError(error.what());
  }
}

//===-- The text of specs -----------------------------------------------------------------------------------------===//

/// `text` gives what an axis is set to: a value, or tune(...).
template <typename Text> static std::string scheduleText(const BaseKernel &base, const std::string &name, Text text) {
  std::string keys = fmt::format("tile = {} x {};", text("rows"), text("keys"));
  for (const auto &[key, value] : base.shipped)
    if (key != "rows" && key != "keys")
      keys += fmt::format(" {} = {};", key, text(key));
  keys += fmt::format(" mma = {};", base.mma);
  return fmt::format("  schedule {} {{ {} }}\n", name, keys);
}

static std::string kernelText(const BaseKernel &base, const std::string &name, const std::string &schedule) {
  return fmt::format("kernel {} {{\n  problem {{ {} }}\n{}{}}}\n", name, base.problem, schedule, base.require);
}

static std::string pointSchedule(const BaseKernel &base, const Space &space, const Point &point,
                                 const std::string &name) {
  return scheduleText(base, name, [&](const std::string &key) { return space.value(point, key); });
}

//===-- Space -----------------------------------------------------------------------------------------------------===//

/// What every space has, also with one value, and what it has when there is a choice.
static constexpr size_t kAlways = 7;

static const std::vector<Axis> &derivedAxes(const std::string &mma) {
  static const std::vector<Axis> warps = {{"rows", {"16", "32", "64", "96", "128", "192", "256"}, false},
                                          {"keys", {"16", "32", "48", "64", "80", "96", "128", "192", "256"}, false},
                                          {"warps", {"1", "2", "4", "8"}, false},
                                          {"stages", {"1", "2", "3", "4"}, false},
                                          {"copy", {"cp_async", "ld_st"}, true},
                                          {"swizzle", {"xor", "pad", "none"}, true},
                                          {"q_in", {"shared", "registers"}, true},
                                          {"p_in", {"registers", "shared"}, true},
                                          {"reduce", {"warp", "shared"}, true},
                                          {"overlap", {"none", "intra", "pingpong", "both"}, true},
                                          {"refill", {"split", "joint", "late"}, true},
                                          {"rescale", {"always", "lazy", "optimistic"}, true}};
  static const std::vector<Axis> warpGroups = {
      {"rows", {"64", "128", "192"}, false},
      {"keys", {"32", "48", "64", "80", "96", "112", "128", "144", "160", "176", "192", "256"}, false},
      {"warps", {"4", "8", "12"}, false},
      {"stages", {"1", "2", "3", "4"}, false},
      {"copy", {"tma"}, true},
      {"swizzle", {"b128"}, true},
      {"q_in", {"shared"}, true},
      {"q_held", {"0", "2", "4", "7", "8"}, false},
      {"overlap", {"none", "intra", "pingpong", "both"}, true},
      {"rescale", {"always", "lazy", "optimistic"}, true},
      {"grid", {"tiles", "persistent", "longest_first"}, true},
      {"cluster", {"1", "2"}, true},
      {"exp", {"mufu", "mixed(8)"}, true}};
  return mma == "wgmma" ? warpGroups : warps;
}

/// The smallest tile that every structure of the family takes.
static std::map<std::string, std::string> smallestNumbers(const std::string &mma) {
  if (mma == "wgmma")
    return {{"rows", "64"}, {"keys", "32"}, {"warps", "4"}, {"stages", "1"}, {"q_held", "0"}};
  return {{"rows", "16"}, {"keys", "32"}, {"warps", "1"}, {"stages", "2"}};
}

static void addValue(Axis &axis, const std::string &value) {
  if (std::find(axis.values.begin(), axis.values.end(), value) == axis.values.end())
    axis.values.push_back(value);
}

/// The schedules of a variant in what --emit=spec --json prints: its own, then its tune(...) choices.
Compiler::Choices Compiler::readChoices(const BaseKernel &base, const std::string &printed,
                                        const std::string &variant) {
  auto read = [&](const Json &schedule) {
    Choice choice{base.shipped};
    for (const auto &[key, value] : schedule.at("values").items())
      if (choice.values.count(key))
        choice.values[key] = value;
    const std::string tile = schedule.at("values").at("tile"); // "16 x 128"
    choice.values["rows"] = tile.substr(0, tile.find(' '));
    choice.values["keys"] = tile.substr(tile.rfind(' ') + 1);
    choice.estimate = {schedule.at("registers"),       schedule.at("ctas_per_sm"),   schedule.at("shared_bytes"), 0,
                       schedule.at("least_registers"), schedule.at("most_registers")};
    return choice;
  };
  Choices choices;
  for (const Json &entry : parseText(printed)) {
    if (entry.at("variant") != variant || entry.at("target") != base.target)
      continue;
    choices.push_back(read(entry.at("schedule")));
    for (const Json &schedule : entry.at("tune"))
      choices.push_back(read(schedule));
  }
  return choices;
}

std::string problemSuffix(const BaseKernel &base) {
  return fmt::format("_{}_d{}{}_{}", base.dtype, base.headDimQK,
                     base.headDimV == base.headDimQK ? "" : fmt::format("x{}", base.headDimV), base.mask);
}

/// The choices of one schedule with tune(...) on these axes, the others as shipped: those that the compiler takes.
Compiler::Choices Compiler::choicesOf(const BaseKernel &base, const std::vector<Axis> &axes,
                                      const std::map<std::string, std::string> &apart, const fs::path &scratch) const {
  auto valueOf = [&](const std::string &key) {
    auto found = apart.find(key);
    return found == apart.end() ? base.shipped.at(key) : found->second;
  };
  auto text = [&](const std::string &key) {
    std::vector<std::string> values = {valueOf(key)};
    for (const Axis &axis : axes)
      if (axis.name == key)
        for (const std::string &value : axis.values)
          if (value != values.front())
            values.push_back(value);
    return values.size() == 1 ? values.front() : fmt::format("tune({})", fmt::join(values, ", "));
  };
  fs::path file = scratch / "space.fa";
  writeFile(file.string(),
            fmt::format("target {};\n", base.target) + kernelText(base, base.kernel, scheduleText(base, "", text)));
  std::string errors, printed = run({file.string(), "--emit=spec", "--json"}, kCompilerSeconds, errors);
  return printed.empty() ? Choices() : readChoices(base, printed, base.kernel + problemSuffix(base));
}

/// Every structure with every number. A schedule has at most 4096 combinations, so structures are listed apart; one
/// whose shipped numbers do not fit begins with the smallest.
Compiler::Choices Compiler::derivedChoices(const BaseKernel &base, const fs::path &scratch) const {
  std::vector<Axis> structural, numeric;
  for (const Axis &axis : derivedAxes(base.mma))
    (axis.structural ? structural : numeric).push_back(axis);
  std::set<std::map<std::string, std::string>> structures;
  for (Choice &choice : choicesOf(base, structural, {}, scratch)) {
    std::erase_if(choice.values, [&](const auto &setting) {
      return std::none_of(structural.begin(), structural.end(),
                          [&](const Axis &axis) { return axis.name == setting.first; });
    });
    structures.insert(choice.values);
  }
  Choices choices;
  for (std::map<std::string, std::string> apart : structures) {
    auto found = choicesOf(base, numeric, apart, scratch);
    if (found.empty()) {
      apart.merge(smallestNumbers(base.mma));
      found = choicesOf(base, numeric, apart, scratch);
    }
    choices.insert(choices.end(), found.begin(), found.end());
  }
  return choices;
}

/// The axes with the values that some choice has, in the order of derivedAxes(), numbers ascending.
std::vector<Axis> Compiler::axesOf(const BaseKernel &base, const Choices &choices) {
  std::vector<Axis> all = derivedAxes(base.mma), axes;
  for (const auto &[key, value] : base.shipped) // any other key may be an axis of the spec's tune(...)
    if (std::none_of(all.begin(), all.end(), [&](const Axis &axis) { return axis.name == key; }))
      all.push_back({key, {}, true});
  for (Axis axis : all) {
    axis.values = {base.shipped.at(axis.name)};
    for (const Choice &choice : choices)
      addValue(axis, choice.values.at(axis.name));
    if (!axis.structural)
      std::sort(axis.values.begin(), axis.values.end(),
                [](const std::string &a, const std::string &b) { return std::stoi(a) < std::stoi(b); });
    bool always = axes.size() < kAlways && axis.name == derivedAxes(base.mma)[axes.size()].name;
    if (always || axis.values.size() > 1)
      axes.push_back(axis);
  }
  return axes;
}

/// Only a hard limit prunes: fragments that alone leave no registers for anything else. The compiler refuses what
/// shared memory does not hold. The shipped point stays whatever it needs.
static void prune(Space &space) {
  const Point shipped = space.points.front();
  space.pruned = std::erase_if(space.points, [&](const Point &point) {
    const Estimate &estimate = space.estimates[point];
    return point != shipped && estimate.leastRegisters > estimate.mostRegisters;
  });
}

Space Compiler::spaceOf(const BaseKernel &base, bool derived, const fs::path &scratch) const {
  std::vector<std::string> arguments = {spec.string(), "--emit=spec", "--json"};
  if (!target.empty())
    arguments.push_back("--target=" + target);
  std::string errors, printed = run(arguments, kCompilerSeconds, errors);
  if (printed.empty())
    throw UserError(errors);
  Choices choices = readChoices(base, printed, base.variant);
  if (choices.empty())
    throw UserError(fmt::format("{} has no variant {} for {}", spec.string(), base.variant, base.target));
  if (derived)
    for (Choice &choice : derivedChoices(base, scratch))
      choices.push_back(std::move(choice));
  Space space;
  space.axes = axesOf(base, choices);
  space.fixed = base.shipped; // axes stand before it
  for (const Choice &choice : choices) {
    Point point;
    for (const Axis &axis : space.axes) {
      auto place = std::find(axis.values.begin(), axis.values.end(), choice.values.at(axis.name));
      point.push_back(static_cast<int>(place - axis.values.begin()));
    }
    if (space.estimates.try_emplace(point, choice.estimate).second)
      space.points.push_back(point);
  }
  prune(space);
  return space;
}

/// Of a spec with kernels c0, c1, ...: the point whose kernel a variant's name begins with; null: of a fallback.
static Estimate *estimateOf(const std::string &variant, const std::vector<Point> &points, Space &space) {
  if (variant.size() < 2 || variant[0] != 'c' || variant.find("_unaligned_") != std::string::npos)
    return nullptr;
  return &space.estimates[points.at(std::stoul(variant.substr(1)))];
}

/// The model needs no proof of the barriers: passes stop before that.
bool Compiler::predict(const BaseKernel &base, Space &space, const std::vector<Point> &points, const Shape &shape,
                       uint32_t sm, const fs::path &scratch) const {
  std::string text = fmt::format("target {};\n", base.target);
  BaseKernel bare = base;
  bare.require.clear();
  for (size_t i = 0; i < points.size(); ++i)
    text += kernelText(bare, fmt::format("c{}", i), pointSchedule(base, space, points[i], ""));
  fs::path file = scratch / "plans.fa";
  writeFile(file.string(), text);
  std::string errors, printed = run({file.string(), "--emit=plan", "--json", "--stop-after=allocate-shared",
                                     "--shape=" + formatShape(shape), fmt::format("--gpu=sm_{}", sm)},
                                    kCompilerSeconds, errors);
  bool any = false;
  for (const Json &entry : Json::parse(printed, nullptr, false))
    if (Estimate *estimate = entry.contains("us") ? estimateOf(entry.at("variant"), points, space) : nullptr) {
      estimate->registers = entry.at("registers");
      estimate->ctasPerSm = entry.at("ctas_per_sm");
      estimate->sharedBytes = entry.at("shared_bytes");
      estimate->microseconds = entry.at("us");
      space.pruneOver = entry.value("may_prune", false) ? entry.at("prune_over").get<double>() : 0;
      any = true;
    }
  return any;
}

std::string Compiler::compile(const BaseKernel &base, const Space &space, const Point &point, const fs::path &directory,
                              double seconds) const {
  makeDirectory(directory.string());
  std::string name = nameOf(space, point);
  fs::path file = directory / (name + ".fa");
  writeFile(file.string(), fmt::format("target {};\n", base.target) +
                               kernelText(base, base.kernel, pointSchedule(base, space, point, name)));
  std::string errors;
  if (run({file.string(), "-o", directory.string()}, seconds, errors).empty())
    return errors.empty() ? "the compiler failed" : errors;
  return {};
}

} // namespace fagen::lab::tune

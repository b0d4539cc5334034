// fagen: specs with random forms.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "DrawForms.h"

#include "Draw.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>
#include <vector>

namespace fagen::random {

namespace {

/// Params that values may name; a form declares those that it does.
constexpr struct {
  std::string_view name, declaration;
} kParams[] = {
    {"n", "i32 in [0, 40]"},
    {"w", "i32 in [1, 40]"},
    {"m", "i32 in [-40, 40]"},
    {"below", "i32 in [-60, -3]"},
    {"any", "i32"},
    {"large", "i32 in [1, 1073741824]"},
    {"t", "f32 in [0.25, 2]"},
    {"cap", "f32 in [1, 30]"},
    {"slope", "f32[heads] in [-1, 1]"},
    {"sinks", "f32[heads] in [-3, 3]"},
    {"near", "bf16[heads, 9]"},
    {"ofQuery", "f16[batch, seq_q]"},
    {"doc", "i32[batch, seq_kv] ascending in [0, 1000]"},
    {"prefix", "i32[batch] in [0, 40]"},
    {"kind", "u8[batch, seq_kv]"},
    {"group", "i32[batch, seq_kv] in [0, 7]"},
    {"signed", "i32[batch, seq_kv] in [-500, 500]"},
    {"whole", "i32[batch, seq_q]"},
    {"sees", "bit[batch, seq_q, seq_kv]"},
    {"map", "bit[heads, 8, 8]"},
    {"some", "f32[n]"},
};

/// Of a mask, by what the compiler can make of them.
constexpr std::string_view kLinear[] = {
    "k <= p",     "p - k < w",     "k < n",           "q - k <= 5",    "k + 3 >= q",      "2 * k <= p + n",
    "k >= n - 3", "k < prefix[b]", "k >= seq_kv - w", "p >= n",        "abs(p - k) <= w", "k - p < prefix[b] - n",
    "h != 1",     "hk < n",        "k < n || k <= p", "2 * k > q + 5", "min(k, n) <= p",  "max(k, w) + k <= 2 * p",
};
constexpr std::string_view kDivisions[] = {
    "floor_div(k, w) == floor_div(p, w)",
    "floor_div(k, 16) <= floor_div(p, 16)",
    "floor_mod(k, 3) != 1",
    "floor_mod(p - k, w) == 0",
    "((q ^ k) & 3) != 0",
    "k >> 2 < (p >> 1) + 3",
    "floor_div(p - k, 7) < 3",
    "floor_mod(k, w) <= floor_mod(q, w)",
    "floor_div(floor_div(k - p, 4), 2) >= -3",
    "floor_div(m - k, w) > -4",
    "floor_div(min(k + below, m), 3) < 2",
    "floor_mod(below - k, w + n) <= 5",
    "floor_div(k, max(m, 2)) < w",
    "floor_div(k, large) <= large",
    "floor_div(max(any, -9), 2) < floor_div(k, 3)",
};
/// Signs of what is read, and of what bounds leave of 32 bits.
constexpr std::string_view kSigned[] = {
    "floor_div(signed[b, k], 4) >= -60",
    "floor_div(min(signed[b, k], signed[b, p]), w) < m",
    "floor_mod(signed[b, k] - m, 5) != 1",
    "floor_div(signed[b, k] + signed[b, q], 8) <= floor_div(k, 8)",
    "floor_div(whole[b, q], 3) <= k",
    "k + any < n",
    "k - p <= any",
    "p - k < whole[b, q]",
    "k + below < whole[b, q]",
    "t > 0.7",
    "slope[h] <= 0.1",
    "near[h, 4] > -inf",
};
/// What folds to a constant, some where a param is bound.
constexpr std::string_view kConstants[] = {
    "1 == 0", "2 > 1", "1.5 < 0.5", "!(3 >= 2)", "w > 40", "w > 10", "w < 1", "floor_mod(-7, 3) == 2",
};
constexpr std::string_view kReads[] = {
    "doc[b, k] == doc[b, p]",
    "doc[b, k] <= doc[b, p]",
    "doc[b, k] < n",
    "kind[b, k] != 3",
    "sees[b, q, k]",
    "map[h, floor_div(q, 4), floor_div(k, 8)]",
    "group[b, k] < 4",
    "group[b, k + 2] >= group[b, q]",
    "kind[b, k] == kind[b, p]",
    "sees[b, k, q + 40]",
    "group[b, k - 30] != 2",
};

class FormDrawer {
public:
  explicit FormDrawer(Random &random) : random(random) {}

  /// A score that is bounded lets schedules do without maxima; without masks there are some more schedules.
  std::string draw(const std::string &name, bool isBounded, bool mayMask) {
    std::string body;
    const bool hasScore = isBounded || !mayMask || random.percent(60),
               hasMask = mayMask && (!hasScore || random.percent(70)), hasSink = random.percent(25);
    if (hasScore && !isBounded && random.percent(12))
      body += "  score = " + constantScore() + ";\n";
    else if (isBounded)
      body += "  score = " + bounded(score(random.below(3))) + ";\n";
    else if (hasScore)
      body += "  score = " + (random.percent(15) ? hidden(score(random.below(3))) : score(random.below(4))) + ";\n";
    if (hasMask)
      body += "  mask = " + (random.percent(8) ? std::string(random.pick(kConstants)) : truth(random.below(3))) + ";\n";
    if (hasSink)
      body += "  sink = " + sink() + ";\n";
    if (random.percent(30) && body.find("k - p") != std::string::npos) {
      for (size_t at; (at = body.find("k - p")) != std::string::npos;)
        body.replace(at, 5, "(distance)");
      body = "  let distance = k - p;\n" + body;
    }
    std::string declarations;
    for (const auto &[param, declaration] : kParams)
      if (names(body, param) || (param == "n" && names(body, "some")))
        declarations += fmt::format("  param {}: {};\n", param, declaration);
    return fmt::format("form {} {{\n{}{}}}\n", name, declarations, body);
  }

  /// How the kernel names it: with a bound param now and then.
  std::string use(const std::string &name, const std::string &text) {
    if (text.find("param w:") != std::string::npos && random.percent(30))
      return fmt::format("{}(w = {})", name, random.between(1, 40));
    return name;
  }

private:
  static bool names(const std::string &text, std::string_view name) {
    const auto isWord = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1))
      if (!isWord(text[at - 1]) && !isWord(text[at + name.size()]))
        return true;
    return false;
  }

  std::string atom() {
    const unsigned kind = random.below(16);
    return std::string(kind < 6    ? random.pick(kLinear)
                       : kind < 9  ? random.pick(kDivisions)
                       : kind < 11 ? random.pick(kReads)
                       : kind < 14 ? random.pick(kSigned)
                       : kind < 15 ? random.pick(kConstants)
                                   : random.pick(kLinear));
  }

  std::string truth(unsigned depth) {
    if (depth == 0)
      return atom();
    const std::string a = truth(depth - 1), b = truth(random.below(depth));
    if (random.percent(10))
      return "!(" + a + ")";
    return random.percent(65) ? fmt::format("({}) && ({})", a, b) : fmt::format("({}) || ({})", a, b);
  }

  /// -inf may only come last: what is made of it could be +inf.
  std::string hidden(const std::string &value) { return fmt::format("({}) ? {} : -inf", truth(0), value); }

  std::string constantScore() {
    static constexpr std::string_view kScores[] = {"-inf", "-inf", "0.0", "1.5", "-2.0 * 3.0", "2.5 > t ? -inf : -inf"};
    return std::string(random.pick(kScores));
  }

  std::string score(unsigned depth) {
    if (depth == 0)
      return random.percent(80) ? "s" : "s * t";
    const std::string e = score(depth - 1);
    switch (random.below(19)) {
    case 0:
      return fmt::format("({}) * t", e);
    case 1:
      return fmt::format("({}) + slope[h] * f32(k - p)", e);
    case 2:
    case 3:
      return fmt::format("cap * tanh(({}) / cap)", e);
    case 4:
      return fmt::format("min({}, 2.5)", e);
    case 5:
      return fmt::format("clamp({}, -4, 3)", e);
    case 6:
      return fmt::format("({}) ? {} : ({}) - 2.5", truth(random.below(2)), e, e);
    case 7:
      return fmt::format("max({}, -3.5)", e);
    case 8:
      return fmt::format("({}) + near[h, clamp(k - p, -4, 4) + 4]", e);
    case 9:
      return fmt::format("abs({})", e);
    case 10:
      return fmt::format("({}) - sqrt(f32(abs(k - p)))", e);
    case 11:
      return fmt::format("({}) - log2(f32(max(abs(p - k), 1)))", e);
    case 12:
      return fmt::format("({}) + f32(floor_mod(k, 5)) * 0.25", e);
    case 13:
      return fmt::format("({}) + ofQuery[b, q] * t", e);
    case 14:
      return fmt::format("exp(min({}, 1.0))", e);
    case 15:
      return fmt::format("-({})", e);
    case 16:
      return fmt::format("({}) + f32(floor_div(signed[b, k], 4)) * 0.01", e);
    case 17:
      return fmt::format("({}) - f32(floor_mod(signed[b, q] - k, w)) * 0.05", e);
    default:
      return fmt::format("({}) + some[k] * 0.5", e);
    }
  }

  std::string bounded(const std::string &value) {
    static constexpr std::string_view kBounded[] = {"30 * tanh(({}) / 30)", "cap * tanh(({}) / cap)",
                                                    "clamp({}, -20, 20)", "tanh({})"};
    return fmt::format(fmt::runtime(random.pick(kBounded)), value);
  }

  std::string sink() {
    static constexpr std::string_view kSinks[] = {"sinks[h]", "t * 0.5", "sinks[h] + f32(q) * 0.01", "-1.5",
                                                  "-inf",     "0.0",     "h == 0 ? -inf : sinks[h]"};
    return std::string(random.pick(kSinks));
  }

  Random &random;
};

constexpr std::string_view kScalar[] = {
    "tile = 16 x 32; warps = 1; mma = scalar; copy = ld_st; stages = 1; swizzle = none;",
    "tile = 32 x 32; warps = 2; mma = scalar; copy = ld_st; stages = 1; swizzle = none;",
};
constexpr std::string_view kWmma[] = {
    "tile = 16 x 32; warps = 1; mma = wmma; copy = cp_async; stages = 1;",
    "tile = 32 x 32; warps = 2; mma = wmma; copy = cp_async; stages = 2;",
};
constexpr std::string_view kMmaSync[] = {
    "tile = 16 x 16; warps = 1; mma = mma_sync; copy = cp_async; stages = 2;",
    "tile = 64 x 32; warps = 4; mma = mma_sync; copy = cp_async; stages = 2;",
    "tile = 16 x 32; warps = 1; mma = mma_sync; copy = cp_async; stages = 3; q_in = registers;",
    "tile = 16 x 64; warps = 4; mma = mma_sync; copy = cp_async; stages = 3; q_in = registers; gqa = pack; "
    "split = auto;",
};
constexpr std::string_view kWgmma[] = {
    "tile = 64 x 64; warps = 4; mma = wgmma; copy = tma; stages = 2; roles = specialized;",
    "tile = 64 x 32; warps = 4; mma = wgmma; copy = tma; stages = 3; roles = specialized; overlap = intra;",
    "tile = 64 x 64; warps = 4; mma = wgmma; copy = tma; stages = 2; roles = specialized; overlap = intra; "
    "rescale = optimistic;",
    "tile = 128 x 64; warps = 8; mma = wgmma; copy = tma; stages = 2; roles = specialized; overlap = both; "
    "rescale = optimistic;",
    "tile = 128 x 64; warps = 8; mma = wgmma; copy = tma; stages = 2; roles = specialized; overlap = both; "
    "rescale = optimistic; grid = longest_first;",
};

/// Of all options: what goes with a causal mask, or with none, goes with a form's.
std::string drawnSchedule(Random &random, const TargetInfo &target, DType dtype, unsigned headDim, bool hasMask) {
  Point point;
  point.target = &target;
  for (const OptionInfo &option : allOptions())
    if (option.block == OptionBlock::Problem)
      point.problem[option.key] = defaultValue(option).value_or(Plain());
  point.problem[OptionKey::DType] = unsigned(dtype);
  point.problem[OptionKey::HeadDim] = Plain(headDim, headDim);
  point.problem[OptionKey::Mask] = optionInfo(OptionKey::Mask).findValue(hasMask ? "causal" : "none")->number;
  Schedule schedule;
  drawSchedule(random, {point}, 1, schedule);
  std::string text;
  for (const Statement &statement : schedule.body)
    if (statement.setting)
      text += fmt::format("{} = {}; ", statement.setting->option->name.str(), textOf(*statement.setting, random));
  return text;
}

std::string schedule(Random &random, bool isHopper, bool hasMasks) {
  if (isHopper && !hasMasks)
    return std::string(kWgmma[random.below(std::size(kWgmma) - 1)]) + " grid = persistent;" +
           (random.percent(40) ? " cluster = 2;" : "") + (random.percent(40) ? " pdl = 1;" : "");
  if (isHopper && random.percent(80))
    return std::string(random.pick(kWgmma)) + (random.percent(40) ? " pdl = 1;" : "");
  switch (random.below(4)) {
  case 0:
    return std::string(random.pick(kScalar));
  case 1:
    return std::string(random.pick(kWmma));
  default:
    return std::string(random.pick(kMmaSync));
  }
}

std::string withoutMaxima(std::string schedule) {
  static constexpr std::string_view kPolicy = "rescale = optimistic;";
  if (const size_t at = schedule.find(kPolicy); at != std::string::npos)
    schedule.erase(at, kPolicy.size());
  return schedule + " rescale = none;";
}

} // namespace

std::string drawFormsSpec(Random &random, const TargetInfo *target) {
  const std::string name = target ? target->name.str() : random.percent(50) ? "sm_89" : "sm_90a";
  FormDrawer drawer(random);
  std::string text = fmt::format("target {};\n", name);
  std::vector<std::string> uses;
  const bool isBounded = name == "sm_90a" && random.percent(20), hasMasks = isBounded || !random.percent(15);
  if (!isBounded && random.percent(30))
    uses.emplace_back(hasMasks && random.percent(50) ? "causal" : "none");
  const unsigned count = random.between(2, 4);
  for (unsigned i = 0; i != count; ++i) {
    const std::string form = fmt::format("f{}", i), block = drawer.draw(form, isBounded, hasMasks);
    text += block;
    uses.push_back(drawer.use(form, block));
  }
  const bool isHopper = name == "sm_90a", isDrawn = !isBounded && random.percent(50);
  const unsigned headDim = isHopper ? 32 : 16;
  const DType dtype = !isBounded && random.percent(50) ? DType::F16 : DType::BF16;
  std::string values = isDrawn ? drawnSchedule(random, *lookupTarget(name), dtype, headDim, hasMasks)
                               : schedule(random, isHopper, hasMasks);
  if (isBounded)
    values = withoutMaxima(values);
  if (!isDrawn && random.percent(25))
    values += " tanh = exp;";
  text +=
      fmt::format("kernel r {{\n  problem {{ dtype = {}; head_dim = {}; form = [{}];{} }}\n  schedule {{ {} }}\n}}\n",
                  dtype == DType::F16 ? "f16" : "bf16", headDim, fmt::join(uses, ", "),
                  random.percent(10) ? " lse = off;" : "", values);
  return text;
}

} // namespace fagen::random

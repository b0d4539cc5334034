// fagen: require: the gates that a kernel must pass.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KernelAnalysis.h"

#include "fagen/Spec/Fit.h"
#include "fagen/Spec/Gates.h"
#include "fagen/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"

#include <fmt/format.h>
#include <limits>

using namespace llvm;

namespace fagen {

namespace {

/// What a gate asks for.
struct GateInfo {
  StringRef name;
  bool isInteger; ///< bytes, registers or CTAs
  bool isRatio;   ///< may be a factor of a baseline
  bool isBytes;
  StringRef what; ///< what its number counts
};

constexpr GateInfo kGates[] = {
    {"registers", true, false, false, "it counts registers of a thread"},
    {"spills", true, false, true, "bytes"},
    {"shared", true, false, true, "bytes"},
    {"ctas", true, false, false, "it counts CTAs that an SM holds"},
    {"error", false, false, false, "it is the largest difference of O"},
    {"time", false, true, false, "it is in microseconds, or a factor of a baseline"},
    {"joules", false, true, false, "it is the energy of a launch, or a factor of a baseline"},
};
constexpr const char kWhatAGateTakes[] =
    "a gate's value is made of numbers, + - * / and ( ); a second limit is a gate of its own";
constexpr StringLiteral kBaselines[] = {"sdpa", "fa2", "cudnn", "cublas"};

/// A number, or a number times a baseline.
struct Quantity {
  double value = 0;
  std::string baseline;
};

/// Folds the right side of a gate.
class GateFolder {
public:
  GateFolder(const GateInfo &gate, Diagnostics &diags) : gate(gate), diags(diags) {}
  std::optional<Quantity> fold(const ast::Expr &expr);

private:
  std::optional<Quantity> fail(const ast::Expr &expr, const std::string &message) {
    diags.error(expr.range, message);
    return std::nullopt;
  }
  std::optional<Quantity> foldName(const ast::Expr &expr);
  std::optional<Quantity> foldBinary(const ast::Expr &expr);
  std::optional<Quantity> foldProduct(const ast::Expr &expr, const Quantity &left, const Quantity &right);

  const GateInfo &gate;
  Diagnostics &diags;
};

} // namespace

std::optional<Quantity> GateFolder::fold(const ast::Expr &expr) {
  switch (expr.kind) {
  case ast::Expr::Integer:
    if (expr.hasUnit && !gate.isBytes)
      return fail(expr,
                  fmt::format("{} is not a number of bytes: {}; leave the unit out", gate.name.str(), gate.what.str()));
    return Quantity{double(expr.integer), ""};
  case ast::Expr::Decimal:
    if (gate.isInteger)
      return fail(expr, fmt::format("{} is an integer, and {} is not", gate.name.str(), expr.decimal));
    return Quantity{expr.decimal, ""};
  case ast::Expr::Variable:
    return foldName(expr);
  case ast::Expr::Binary:
    return foldBinary(expr);
  case ast::Expr::Unary:
    if (std::optional<Quantity> operand = expr.name == "-" ? fold(*expr.operands[0]) : std::nullopt)
      return Quantity{-operand->value, operand->baseline};
    return fail(expr, kWhatAGateTakes);
  default:
    return fail(expr, kWhatAGateTakes);
  }
}

std::optional<Quantity> GateFolder::foldName(const ast::Expr &expr) {
  std::vector<StringRef> baselines(std::begin(kBaselines), std::end(kBaselines));
  if (!gate.isRatio)
    return fail(expr, fmt::format("{} is compared with a number, not with '{}'", gate.name.str(), expr.name));
  if (is_contained(baselines, expr.name))
    return Quantity{1, expr.name};
  StringRef near = nearestWord(expr.name, baselines);
  return fail(expr, fmt::format("unknown baseline '{}'{}", expr.name,
                                near.empty() ? "; it is " + alternatives(baselines)
                                             : fmt::format("; did you mean '{}'? there are {}", near.str(),
                                                           alternatives(baselines))));
}

std::optional<Quantity> GateFolder::foldProduct(const ast::Expr &expr, const Quantity &left, const Quantity &right) {
  bool isQuotient = expr.name == "/";
  if (!right.baseline.empty() && (isQuotient || !left.baseline.empty()))
    return fail(expr, "a baseline may be multiplied or divided by a number only");
  if (isQuotient && right.value == 0)
    return fail(expr, "division by zero");
  return Quantity{isQuotient ? left.value / right.value : left.value * right.value, left.baseline + right.baseline};
}

std::optional<Quantity> GateFolder::foldBinary(const ast::Expr &expr) {
  std::optional<Quantity> left = fold(*expr.operands[0]);
  std::optional<Quantity> right = fold(*expr.operands[1]);
  if (!left || !right)
    return std::nullopt;
  if (expr.name == "*" || expr.name == "/")
    return foldProduct(expr, *left, *right);
  if (expr.name != "+" && expr.name != "-")
    return fail(expr, kWhatAGateTakes);
  if (left->baseline != right->baseline)
    return fail(expr, "a baseline may be multiplied or divided by a number only");
  return Quantity{expr.name == "+" ? left->value + right->value : left->value - right->value, left->baseline};
}

/// Why a gate has one result for every kernel: "cannot fail: ..." or "cannot pass: ..."; empty when it has not.
static std::string whyItIsFixed(const Gate &gate) {
  constexpr double kMostRegisters = 255, kMostCtas = 32, kAny = std::numeric_limits<double>::infinity();
  const bool isRegisters = gate.name == "registers", isCtas = gate.name == "ctas";
  const double least = isCtas ? 1 : 0, most = isRegisters ? kMostRegisters : isCtas ? kMostCtas : kAny;
  const bool isOutside = gate.value < least || gate.value > most;
  const bool isEquality = gate.relation == "==" || gate.relation == "!=";
  const bool atLeast = gateHolds(gate, least), atMost = gateHolds(gate, most);
  if (isEquality ? !isOutside : atLeast != atMost)
    return "";
  const std::string result = atLeast ? "cannot fail" : "cannot pass";
  if (isRegisters)
    return fmt::format("{}: a thread has at most {} registers; ask for fewer, or for CTAs an SM, like ctas >= 2",
                       result, kMostRegisters);
  if (isCtas)
    return fmt::format("{}: an SM holds every kernel once, and none more than {} times; ask for more than 1, like "
                       "ctas >= 2",
                       result, kMostCtas);
  return fmt::format("{}: {} is never below 0; give a limit above it, like {}", result, gate.name,
                     gate.name == "spills"   ? "spills == 0"
                     : gate.name == "shared" ? "shared <= 48 KiB"
                     : gate.name == "error"  ? "error <= 0.002"
                     : gate.name == "joules" ? "joules <= 1.05 * sdpa"
                                             : "time <= 1.05 * sdpa");
}

void KernelAnalysis::checkGate(const ast::Gate &gate) {
  auto info = find_if(kGates, [&](const GateInfo &other) { return other.name == gate.name.text; });
  if (info == std::end(kGates)) {
    std::vector<StringRef> names;
    for (const GateInfo &known : kGates)
      names.push_back(known.name);
    StringRef near = nearestWord(gate.name.text, names);
    diags.error(gate.name.range, fmt::format("unknown gate '{}'{}", gate.name.text,
                                             near.empty() ? "; it is " + alternatives(names)
                                                          : fmt::format("; did you mean '{}'?", near.str())));
    return;
  }
  std::optional<Quantity> quantity = GateFolder(*info, diags).fold(*gate.value);
  if (!quantity)
    return;
  Gate checked;
  checked.name = gate.name.text;
  checked.relation = gate.relation;
  checked.value = quantity->value;
  checked.baseline = quantity->baseline;
  checked.text = textOf(gate.range);
  checked.location = diags.locate(gate.range.Start);
  if (const std::string why = whyItIsFixed(checked); !why.empty()) {
    diags.error(gate.range, fmt::format("'{}' {}", checked.text, why));
    return;
  }
  spec.gates.push_back(std::move(checked));
}

void KernelAnalysis::checkGates() {
  if (kernel.requires_.empty())
    return;
  for (const ast::Gate &gate : kernel.requires_.front().gates)
    checkGate(gate);
}

bool gateHolds(const Gate &gate, double measured) {
  if (gate.relation == "==")
    return measured == gate.value;
  if (gate.relation == "!=")
    return measured != gate.value;
  if (gate.relation == "<")
    return measured < gate.value;
  if (gate.relation == "<=")
    return measured <= gate.value;
  if (gate.relation == ">")
    return measured > gate.value;
  return measured >= gate.value;
}

FitLimits limitsOf(const Gate &gate, const Variant &variant) {
  FitLimits limits;
  const bool isStrict = gate.relation == "<";
  if (gate.name == "shared")
    limits.sharedBytes = uint64_t(std::max(gate.value - isStrict, 0.0));
  if (gate.name == "registers")
    limits.registers = unsigned(std::max(gate.value - isStrict, 0.0));
  if (gate.name == "spills" || gate.name == "registers")
    limits.leastRegisters = variant.schedule.figures.leastRegisters - 1;
  if (gate.name == "ctas") { // so much that as many fit an SM
    const auto ctas = unsigned(std::max(gate.value + (gate.relation == ">"), 1.0));
    limits.sharedBytes = variant.target->sharedPerSm / ctas - variant.target->sharedReserved;
    limits.registers = variant.target->registersPerSm / ctas / (variant.schedule.warps * 32);
  }
  return limits;
}

std::string besideItsTile(const std::string &remedy) {
  return remedy.empty() ? "its tile is set here" : "its tile is set here; " + remedy;
}

bool checkSharedGates(const KernelSpec &kernel, SharedMeter &meter, Diagnostics &diags) {
  bool passed = true;
  for (const Gate &gate : kernel.gates) {
    if (gate.name != "shared")
      continue;
    for (const Variant &variant : kernel.variants) {
      uint64_t bytes = variant.schedule.shared.total;
      if (gateHolds(gate, double(bytes)))
        continue;
      passed = false;
      diags.error(gate.location,
                  fmt::format("{} needs {} B of shared memory, which fails '{}'", variant.name, bytes, gate.text));
      diags.note(variant.schedule.locationOf("tile"),
                 besideItsTile(nearestThatFits(variant, meter, limitsOf(gate, variant))));
      break; // one variant shows the mistake
    }
  }
  return passed;
}

} // namespace fagen

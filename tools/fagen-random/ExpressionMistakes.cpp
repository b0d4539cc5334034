// fagen: mistakes in conditions of when and select, and in gates.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Mistakes.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace fagen::random {

static Node textNode(Node::Kind kind, std::string head) {
  Node node{kind, std::move(head), "", "", kind == Node::When ? "}" : ";", nullptr, {}, true, false};
  return node;
}

/// Puts a when with the condition somewhere into a schedule.
static bool addWhen(std::vector<Node> &nodes, Random &random, const std::string &condition) {
  std::vector<Node *> schedules = nodesOf(nodes, Node::Schedule);
  std::vector<Node> &body = random.pick(schedules)->body;
  body.insert(body.begin() + random.below(body.size() + 1), textNode(Node::When, "when " + condition));
  return true;
}

/// Puts a line before the last line of a select.
static bool addSelectLine(std::vector<Node> &nodes, Random &random, const std::string &text) {
  std::vector<Node *> selects = nodesOf(nodes, Node::Select);
  if (selects.empty())
    return false;
  std::vector<Node> &body = random.pick(selects)->body;
  const std::string schedule = StringRef(body.back().head).rsplit(": ").second.str();
  body.insert(body.end() - 1,
              textNode(Node::SelectLine, text + (StringRef(text).contains(':') ? "" : " : " + schedule)));
  return true;
}

/// Puts a gate into a require, which may be a new one.
static bool addGate(std::vector<Node> &nodes, Random &random, const std::string &text) {
  std::vector<Node *> kernels = nodesOf(nodes, Node::Kernel);
  std::vector<Node> &parts = random.pick(kernels)->body;
  if (parts.back().kind != Node::Require) {
    Node require = textNode(Node::Require, "require");
    require.end = "}";
    require.isWrong = false;
    parts.push_back(std::move(require));
  }
  std::vector<Node> &body = parts.back().body;
  body.insert(body.begin() + random.below(body.size() + 1), textNode(Node::Gate, text));
  return true;
}

//===-- when and select
//--------------------------------------------------------------------------------------------===//

static bool scheduleKeyInWhen(std::vector<Node> &nodes, Random &random) {
  const std::vector<StringRef> keys = optionNames(OptionBlock::Schedule);
  return addWhen(nodes, random, random.pick(keys).str() + " == 1");
}

static bool runTimeNameInWhen(std::vector<Node> &nodes, Random &random) {
  static constexpr StringLiteral kTexts[] = {"seq_q <= 32", "mask == causal && batch > 1", "!(sms < 100)"};
  return addWhen(nodes, random, random.pick(kTexts).str());
}

static bool divisionByZeroInWhen(std::vector<Node> &nodes, Random &random) {
  static constexpr StringLiteral kTexts[] = {"head_dim_qk % (head_dim_v - head_dim_v) == 0", "1 / (head_dim_v / 1024)",
                                             "ceil_div(head_dim_qk, 3 - 3) > 1", "head_dim_v / 0 == 1"};
  return addWhen(nodes, random, random.pick(kTexts).str());
}

static bool unknownValueInWhen(std::vector<Node> &nodes, Random &random) {
  static constexpr StringLiteral kTexts[] = {"mask == casual", "target == sm_88", "lse == yes", "dtype != half",
                                             "f61 == dtype"};
  return addWhen(nodes, random, random.pick(kTexts).str());
}

static bool wrongExpression(std::vector<Node> &nodes, Random &random, StringRef number) {
  const std::string name = number.str();
  const std::string kTexts[] = {"mask < causal",
                                "mask + 1 == 2",
                                name + " <= 64.5",
                                name + " == 64 KB",
                                "ceil_div(" + name + ") > 1",
                                "max(" + name + ", 2) > 1",
                                name + " = 64",
                                name + " == ",
                                "(" + name + " == 64",
                                name + " ** 2 == 64",
                                "dtype == 1",
                                "unknown_name > 2",
                                name + " > 2147483648",
                                "mask",
                                "!mask == none"};
  const std::string text = random.pick(kTexts);
  return random.percent(50) ? addWhen(nodes, random, text) : addSelectLine(nodes, random, "when " + text);
}

static bool wrongExpressionInEither(std::vector<Node> &nodes, Random &random) {
  return wrongExpression(nodes, random, "head_dim_qk");
}

static bool targetInSelect(std::vector<Node> &nodes, Random &random) {
  return addSelectLine(nodes, random, "when target == sm_89");
}

static bool scheduleKeyInSelect(std::vector<Node> &nodes, Random &random) {
  return addSelectLine(nodes, random, "when stages == 2");
}

static bool zeroDivisorInSelect(std::vector<Node> &nodes, Random &random) {
  static constexpr StringLiteral kTexts[] = {"when seq_q / 0 > 1", "when seq_kv % (2 - 2) == 0",
                                             "when ceil_div(batch, !1) == 1"};
  return addSelectLine(nodes, random, random.pick(kTexts).str());
}

static bool noColonInSelect(std::vector<Node> &nodes, Random &random) {
  std::vector<Node *> lines = nodesOf(nodes, Node::SelectLine);
  if (lines.empty())
    return false;
  Node &line = *random.pick(lines);
  const auto [condition, schedule] = StringRef(line.head).rsplit(" : ");
  line.head = (condition + (random.percent(50) ? " " : " -> ") + schedule).str();
  return line.isWrong = true;
}

static bool unknownSchedule(std::vector<Node> &nodes, Random &random) {
  return addSelectLine(nodes, random, "when seq_q > 1 : nothing_like_it");
}

static bool implicitSchedule(std::vector<Node> &nodes, Random &random) {
  return addSelectLine(nodes, random, "when seq_q > 1 : unaligned");
}

static bool noOtherwise(std::vector<Node> &nodes, Random &random) {
  std::vector<Node *> selects = nodesOf(nodes, Node::Select);
  if (selects.empty())
    return false;
  Node &select = *random.pick(selects);
  select.body.pop_back();
  return select.isWrong = true;
}

/// Whatever stands after the first otherwise is wrong.
static bool otherwiseFirst(std::vector<Node> &nodes, Random &random) {
  std::vector<Node *> selects = nodesOf(nodes, Node::Select);
  if (selects.empty())
    return false;
  std::vector<Node> &body = random.pick(selects)->body;
  for (Node &line : body)
    line.isWrong = true;
  Node first = body.back();
  first.isWrong = false;
  body.insert(body.begin(), std::move(first));
  return true;
}

//===-- Gates
//-----------------------------------------------------------------------------------------------------===//

static bool unknownGate(std::vector<Node> &nodes, Random &random) {
  static constexpr StringLiteral kTexts[] = {"register <= 255", "smem < 99 KiB", "errors <= 0.1", "tile == 64"};
  return addGate(nodes, random, random.pick(kTexts).str());
}

static bool wrongGateValue(std::vector<Node> &nodes, Random &random) {
  static constexpr StringLiteral kTexts[] = {"registers <= 24.5", "error <= sdpa",       "time < 0.9 * spda",
                                             "time < sdpa * fa2", "time < 2 / sdpa",     "shared <= 99 KB",
                                             "spills == none",    "time < sdpa + 1",     "error < !1",
                                             "error < 1 / 0",     "shared <= mask == 1", "registers < ceil_div(9, 2)"};
  return addGate(nodes, random, random.pick(kTexts).str());
}

static bool wrongGateForm(std::vector<Node> &nodes, Random &random) {
  static constexpr StringLiteral kTexts[] = {"registers", "registers = 255", "registers <=", "<= 255", "shared 99 KiB"};
  return addGate(nodes, random, random.pick(kTexts).str());
}

std::vector<Mistake> expressionMistakes() {
  return {{"schedule-key-in-when", scheduleKeyInWhen},
          {"run-time-name-in-when", runTimeNameInWhen},
          {"division-by-zero-in-when", divisionByZeroInWhen},
          {"unknown-value-in-when", unknownValueInWhen},
          {"wrong-expression", wrongExpressionInEither},
          {"target-in-select", targetInSelect},
          {"schedule-key-in-select", scheduleKeyInSelect},
          {"zero-divisor-in-select", zeroDivisorInSelect},
          {"no-colon-in-select", noColonInSelect},
          {"unknown-schedule", unknownSchedule},
          {"implicit-schedule-in-select", implicitSchedule},
          {"no-otherwise", noOtherwise},
          {"otherwise-first", otherwiseFirst},
          {"unknown-gate", unknownGate},
          {"wrong-gate-value", wrongGateValue},
          {"wrong-gate-form", wrongGateForm}};
}

} // namespace fagen::random

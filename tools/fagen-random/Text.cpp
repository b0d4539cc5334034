// fagen: drawn specs as text in random layouts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Text.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>

using namespace llvm;

namespace fagen::random {

//===-- Nodes
//------------------------------------------------------------------------------------------------------===//

static Node line(Node::Kind kind, std::string text) {
  Node node{kind, std::move(text), "", "", ";", nullptr, {}, false, false};
  return node;
}

static Node block(Node::Kind kind, std::string text, std::vector<Node> body = {}) {
  Node node{kind, std::move(text), "", "", "}", nullptr, std::move(body), false, false};
  return node;
}

static Node settingNode(const Setting &setting, Random &random) {
  Node node = line(Node::Setting, setting.option->name.str());
  node.link = "=";
  node.value = textOf(setting, random);
  node.option = setting.option;
  node.isWrong = setting.isWrong;
  return node;
}

static std::vector<Node> bodyNodes(const std::vector<Statement> &body, Random &random) {
  std::vector<Node> nodes;
  for (const Statement &statement : body)
    nodes.push_back(statement.setting ? settingNode(*statement.setting, random)
                                      : block(Node::When, "when " + statement.when->condition,
                                              bodyNodes(statement.when->body, random)));
  return nodes;
}

static Node kernelNode(const Kernel &kernel, Random &random) {
  Node node = block(Node::Kernel, "kernel " + kernel.name, {block(Node::Problem, "problem")});
  for (const Setting &setting : kernel.problem)
    node.body.front().body.push_back(settingNode(setting, random));
  for (const Schedule &schedule : kernel.schedules) {
    const std::string name = schedule.name.empty() ? "" : " " + schedule.name;
    node.body.push_back(block(Node::Schedule, "schedule" + name, bodyNodes(schedule.body, random)));
    node.body.back().isWrong = schedule.isWrong;
  }
  if (!kernel.select.empty()) {
    Node &select = node.body.emplace_back(block(Node::Select, "select"));
    for (const std::string &text : kernel.select)
      select.body.push_back(line(Node::SelectLine, text));
  }
  if (!kernel.gates.empty()) {
    Node &require = node.body.emplace_back(block(Node::Require, "require"));
    for (const std::string &text : kernel.gates)
      require.body.push_back(line(Node::Gate, text));
  }
  return node;
}

std::vector<Node> toNodes(Spec &spec, Random &random) {
  std::vector<std::string> targets;
  for (const TargetInfo *target : spec.targets)
    targets.push_back(target->name.str());
  std::vector<Node> nodes = {line(Node::Target, "target " + join(targets, ", "))};
  for (const Kernel &kernel : spec.kernels)
    nodes.push_back(kernelNode(kernel, random));
  return nodes;
}

std::vector<Node *> nodesOf(std::vector<Node> &nodes, Node::Kind kind) {
  std::vector<Node *> found;
  for (Node &node : nodes) {
    if (node.kind == kind)
      found.push_back(&node);
    std::vector<Node *> inner = nodesOf(node.body, kind);
    found.insert(found.end(), inner.begin(), inner.end());
  }
  return found;
}

//===-- Layout
//-----------------------------------------------------------------------------------------------------===//

namespace {

class Printer {
public:
  Printer(unsigned firstLine, Random &random)
      : random(random), lineNumber(firstLine), indentWidth(random.percent(75) ? 2 : 4), isAligned(random.percent(50)),
        comments(random.percent(50) ? 0 : 12), joins(random.percent(60) ? 0 : 30) {}

  PrintedText run(const std::vector<Node> &nodes) {
    printAll(nodes, 0);
    if (isNextWrong)
      expectHere(); // the end of the file
    return std::move(result);
  }

private:
  void write(const std::string &text) {
    if (isLineBegun || text.empty()) {
      result.text += text;
      return;
    }
    result.text += std::string(depth * indentWidth, ' ') + text;
    isLineBegun = true;
  }
  void endLine() {
    result.text += '\n';
    ++lineNumber;
    isLineBegun = false;
  }
  void expectHere() {
    if (result.wrongLines.empty() || result.wrongLines.back() != lineNumber)
      result.wrongLines.push_back(lineNumber);
  }
  void beginNode(const Node &node) {
    if (node.isWrong || isNextWrong)
      expectHere();
    isNextWrong = false;
  }

  void printAll(const std::vector<Node> &nodes, unsigned at);
  void print(const Node &node, size_t keyWidth);
  void printBlock(const Node &node);
  void printComment();

  Random &random;
  PrintedText result;
  unsigned lineNumber;
  const unsigned indentWidth;
  const bool isAligned;
  const unsigned comments; ///< percent of places that have one
  const unsigned joins;    ///< percent of lines that the next one joins
  unsigned depth = 0;
  bool isLineBegun = false;
  bool isNextWrong = false;
};

} // namespace

void Printer::printComment() {
  static constexpr StringLiteral kTexts[] = {
      "keys of one tile", "}", "tile = 1 x 1;", "*", "schedule x {", "4 B", "//"};
  const std::string text = random.pick(kTexts).str();
  write(" /* " + text + " */ ");
}

void Printer::printBlock(const Node &node) {
  const bool isShort = node.body.size() <= 1 && node.kind == Node::When && node.end == "}" && random.percent(60);
  write(node.head + " {");
  if (isShort) {
    for (const Node &inner : node.body) {
      write(" ");
      print(inner, 0);
    }
    write(" " + node.end);
    isNextWrong = node.isNextWrong;
    return;
  }
  endLine();
  printAll(node.body, depth + 1);
  if (isNextWrong && !node.end.empty()) {
    expectHere();
    isNextWrong = false;
  }
  write(node.end);
  isNextWrong |= node.isNextWrong;
}

void Printer::print(const Node &node, size_t keyWidth) {
  beginNode(node);
  if (node.isBlock()) {
    printBlock(node);
    return;
  }
  write(node.head);
  if (node.option) {
    write(std::string(keyWidth > node.head.size() ? keyWidth - node.head.size() : 0, ' '));
    write(" " + node.link);
    if (random.percent(comments / 3))
      printComment();
    write(" " + node.value);
  }
  write(node.end);
  isNextWrong = node.isNextWrong;
}

void Printer::printAll(const std::vector<Node> &nodes, unsigned at) {
  const unsigned outer = std::exchange(depth, at);
  size_t keyWidth = 0;
  for (const Node &node : nodes)
    if (isAligned && node.option)
      keyWidth = std::max(keyWidth, node.head.size());
  for (size_t i = 0; i != nodes.size(); ++i) {
    if (isLineBegun)
      write(" ");
    else if (random.percent(comments)) {
      printComment();
      endLine();
    }
    print(nodes[i], keyWidth);
    const bool joinsNext = i + 1 != nodes.size() && !nodes[i].isBlock() && !nodes[i + 1].isBlock() && depth != 0;
    if (joinsNext && random.percent(joins))
      continue;
    if (random.percent(comments))
      write(" // " + std::to_string(lineNumber) + "; }");
    endLine();
    if (nodes[i].isBlock() && i + 1 != nodes.size() && random.percent(60))
      endLine();
  }
  depth = outer;
}

PrintedText print(const std::vector<Node> &nodes, unsigned firstLine, Random &random) {
  return Printer(firstLine, random).run(nodes);
}

} // namespace fagen::random

// fagen: mistakes in what a file and its blocks consist of.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Mistakes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace fagen::random {

static Node *pickNode(std::vector<Node> &nodes, Random &random, Node::Kind kind) {
  std::vector<Node *> found = nodesOf(nodes, kind);
  return found.empty() ? nullptr : random.pick(found);
}

static bool mark(Node &node) { return node.isWrong = true; }

//===-- Targets
//---------------------------------------------------------------------------------------------------===//

static bool noTarget(std::vector<Node> &nodes, Random &) {
  nodes.erase(nodes.begin());
  return true;
}

static bool unknownTarget(std::vector<Node> &nodes, Random &random) {
  static constexpr StringLiteral kNames[] = {"sm_88", "sm89", "hopper", "sm_75"};
  nodes.front().head += ", " + random.pick(kNames).str();
  return mark(nodes.front());
}

static bool targetTwice(std::vector<Node> &nodes, Random &) {
  Node &target = nodes.front();
  target.head += ", " + StringRef(target.head).rsplit(' ').second.str();
  return mark(target);
}

static bool targetLate(std::vector<Node> &nodes, Random &random) {
  Node target = nodes.front();
  mark(target);
  if (random.percent(50))
    nodes.push_back(target); // a second one
  else
    nodes.insert(nodes.begin() + 1, target);
  return true;
}

static bool noTargetName(std::vector<Node> &nodes, Random &random) {
  nodes.front().head = random.percent(50) ? "target" : "target 89";
  return mark(nodes.front());
}

//===-- Kernels
//---------------------------------------------------------------------------------------------------===//

static bool kernelTwice(std::vector<Node> &nodes, Random &random) {
  Node kernel = *pickNode(nodes, random, Node::Kernel);
  const auto [word, name] = StringRef(kernel.head).split(' ');
  kernel.head = (word + " ").str() + (random.percent(50) ? name.upper() : name.str());
  mark(kernel);
  nodes.push_back(std::move(kernel));
  return true;
}

static bool keywordForKernel(std::vector<Node> &nodes, Random &random) {
  static constexpr StringLiteral kNames[] = {"class", "float", "xor", "requires", "co_await"};
  Node &kernel = *pickNode(nodes, random, Node::Kernel);
  kernel.head = "kernel " + random.pick(kNames).str();
  return mark(kernel);
}

static bool noKernelName(std::vector<Node> &nodes, Random &random) {
  Node &kernel = *pickNode(nodes, random, Node::Kernel);
  kernel.head = random.percent(50) ? "kernel" : "kernel 64";
  return mark(kernel);
}

static bool misspelledKernel(std::vector<Node> &nodes, Random &random) {
  Node &kernel = *pickNode(nodes, random, Node::Kernel);
  kernel.head = "kernal" + kernel.head.substr(StringRef("kernel").size());
  return mark(kernel);
}

static bool noKernel(std::vector<Node> &nodes, Random &) {
  nodes.resize(1, nodes.front());
  return true;
}

//===-- Blocks
//----------------------------------------------------------------------------------------------------===//

/// Takes all blocks of a kind out of a kernel.
static bool removeBlocks(std::vector<Node> &nodes, Random &random, Node::Kind kind) {
  Node &kernel = *pickNode(nodes, random, Node::Kernel);
  erase_if(kernel.body, [&](const Node &part) { return part.kind == kind; });
  return mark(kernel);
}

static bool noProblem(std::vector<Node> &nodes, Random &random) { return removeBlocks(nodes, random, Node::Problem); }

static bool noSchedule(std::vector<Node> &nodes, Random &random) {
  Node &kernel = *pickNode(nodes, random, Node::Kernel);
  erase_if(kernel.body, [](const Node &part) { return part.kind == Node::Schedule || part.kind == Node::Select; });
  return mark(kernel);
}

/// Repeats a block that may stand once.
static bool blockTwice(std::vector<Node> &nodes, Random &random) {
  std::vector<Node *> blocks;
  for (Node::Kind kind : {Node::Problem, Node::Select, Node::Require})
    append_range(blocks, nodesOf(nodes, kind));
  Node block = *random.pick(blocks);
  mark(block);
  for (Node *kernel : nodesOf(nodes, Node::Kernel)) {
    auto first = find_if(kernel->body, [&](const Node &part) { return part.kind == block.kind && !part.isWrong; });
    if (first == kernel->body.end())
      continue;
    kernel->body.push_back(std::move(block));
    return true;
  }
  return false;
}

static bool misspelledBlock(std::vector<Node> &nodes, Random &random) {
  Node &kernel = *pickNode(nodes, random, Node::Kernel);
  Node &part = random.pick(kernel.body);
  part.head.erase(1, 1);
  return mark(part);
}

static bool requiredKeyMissing(std::vector<Node> &nodes, Random &random) {
  std::vector<Node *> settings = nodesOf(nodes, Node::Setting);
  erase_if(settings, [](Node *node) { return !node->option->required; });
  const OptionInfo *option = random.pick(settings)->option;
  const Node::Kind kind = option->block == OptionBlock::Problem ? Node::Problem : Node::Schedule;
  Node &block = *pickNode(nodes, random, kind);
  erase_if(block.body, [&](const Node &node) { return node.option == option; });
  for (Node *when : nodesOf(block.body, Node::When))
    erase_if(when->body, [&](const Node &node) { return node.option == option; });
  return mark(block);
}

static bool whenInProblem(std::vector<Node> &nodes, Random &random) {
  Node when{Node::When, "when mask == none", "", "", "}", nullptr, {}, true, false};
  pickNode(nodes, random, Node::Problem)->body.push_back(std::move(when));
  return true;
}

//===-- Schedules
//-------------------------------------------------------------------------------------------------===//

static std::vector<Node *> schedulesOf(Node &kernel) {
  std::vector<Node *> schedules;
  for (Node &part : kernel.body)
    if (part.kind == Node::Schedule)
      schedules.push_back(&part);
  return schedules;
}

static bool hasSelect(const Node &kernel) {
  return any_of(kernel.body, [](const Node &part) { return part.kind == Node::Select; });
}

static bool scheduleTwice(std::vector<Node> &nodes, Random &random) {
  Node &kernel = *pickNode(nodes, random, Node::Kernel);
  if (!hasSelect(kernel))
    return false;
  Node schedule = *random.pick(schedulesOf(kernel));
  mark(schedule);
  kernel.body.push_back(std::move(schedule));
  return true;
}

static bool scheduleUnaligned(std::vector<Node> &nodes, Random &random) {
  Node &kernel = *pickNode(nodes, random, Node::Kernel);
  if (hasSelect(kernel))
    return false; // it would miss the old name
  Node &schedule = *schedulesOf(kernel).front();
  schedule.head = "schedule unaligned";
  return mark(schedule);
}

static bool noSelect(std::vector<Node> &nodes, Random &random) {
  Node &kernel = *pickNode(nodes, random, Node::Kernel);
  const std::vector<Node *> schedules = schedulesOf(kernel);
  if (schedules.size() < 2)
    return false;
  mark(*schedules[1]);
  erase_if(kernel.body, [](const Node &part) { return part.kind == Node::Select; });
  return true;
}

static bool namelessSchedule(std::vector<Node> &nodes, Random &random) {
  Node &kernel = *pickNode(nodes, random, Node::Kernel);
  if (!hasSelect(kernel))
    return false;
  Node schedule = *schedulesOf(kernel).front();
  schedule.head = "schedule";
  mark(schedule);
  kernel.body.push_back(std::move(schedule));
  return true;
}

//===-- Braces and comments
//---------------------------------------------------------------------------------------===//

/// The last kernel is never closed, which shows at the end of the file.
static bool kernelLeftOpen(std::vector<Node> &nodes, Random &) {
  nodes.back().end = "";
  return nodes.back().isNextWrong = true;
}

/// The next block is read as a setting; then the kernel's end is missing.
static bool blockLeftOpen(std::vector<Node> &nodes, Random &random) {
  Node &part = random.pick(nodes.back().body);
  part.end = "";
  const bool isLast = &part == &nodes.back().body.back();
  part.isNextWrong = !isLast;
  return nodes.back().isNextWrong = true;
}

static bool braceTooMany(std::vector<Node> &nodes, Random &) {
  Node brace{Node::Gate, "}", "", "", "", nullptr, {}, true, false};
  nodes.push_back(std::move(brace));
  return true;
}

static bool wordsAfter(std::vector<Node> &nodes, Random &random) {
  Node words{Node::Gate, random.percent(50) ? "end" : "problem = 3", "", "", ";", nullptr, {}, true, false};
  nodes.push_back(std::move(words));
  return true;
}

/// What follows is comment: the kernel is not closed either.
static bool commentLeftOpen(std::vector<Node> &nodes, Random &random) {
  std::vector<Node> &parts = nodes.back().body;
  const size_t last = random.below(parts.size());
  parts.erase(parts.begin() + last + 1, parts.end());
  parts[last].body = {Node{Node::Gate, "/* the rest", "", "", "", nullptr, {}, true, false}};
  parts[last].end = nodes.back().end = "";
  return nodes.back().isNextWrong = true;
}

static bool braceMissing(std::vector<Node> &nodes, Random &random) {
  Node &part = *pickNode(nodes, random, random.percent(50) ? Node::Problem : Node::Schedule);
  part.head += " = 1; x"; // what stands there instead of the brace begins a statement of the kernel
  return mark(part);
}

std::vector<Mistake> blockMistakes() {
  return {{"no-target", noTarget},
          {"unknown-target", unknownTarget},
          {"target-twice", targetTwice},
          {"target-late", targetLate},
          {"no-target-name", noTargetName},
          {"kernel-twice", kernelTwice},
          {"keyword-for-kernel", keywordForKernel},
          {"no-kernel-name", noKernelName},
          {"misspelled-kernel", misspelledKernel},
          {"no-kernel", noKernel},
          {"no-problem", noProblem},
          {"no-schedule", noSchedule},
          {"block-twice", blockTwice},
          {"misspelled-block", misspelledBlock},
          {"required-key-missing", requiredKeyMissing},
          {"when-in-problem", whenInProblem},
          {"schedule-twice", scheduleTwice},
          {"schedule-unaligned", scheduleUnaligned},
          {"no-select", noSelect},
          {"nameless-schedule", namelessSchedule},
          {"kernel-left-open", kernelLeftOpen},
          {"block-left-open", blockLeftOpen},
          {"brace-too-many", braceTooMany},
          {"words-after", wordsAfter},
          {"comment-left-open", commentLeftOpen},
          {"brace-missing", braceMissing}};
}

} // namespace fagen::random

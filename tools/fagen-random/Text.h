// fagen: a spec on its way to text: blocks and lines, which mistakes can change in ways that mean nothing.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "Model.h"

namespace fagen::random {

/// A line, or a block with what stands in it.
struct Node {
  enum Kind : uint8_t { Target, Kernel, Problem, Schedule, When, Select, Require, Setting, SelectLine, Gate };

  Kind kind;
  std::string head;                   ///< the key of a setting; else everything before the `;` or `{`
  std::string link;                   ///< of a setting: "="
  std::string value;                  ///< of a setting
  std::string end = ";";              ///< of a line; of a block "}"
  const OptionInfo *option = nullptr; ///< of a setting
  std::vector<Node> body;             ///< of a block
  bool isWrong = false;               ///< an error is expected in its first line
  bool isNextWrong = false;           ///< an error is expected where the next token begins

  bool isBlock() const { return kind != Target && kind < Setting; }
};

/// The spec's text as it is, every value spelled in one of its ways.
std::vector<Node> toNodes(Spec &spec, Random &random);

struct PrintedText {
  std::string text;
  std::vector<unsigned> wrongLines; ///< in ascending order; none: the mistake is the file's, and its error in line 1
};

/// The nodes in a random layout; the first line has the number `firstLine`.
PrintedText print(const std::vector<Node> &nodes, unsigned firstLine, Random &random);

/// Every node of the kind, in text order.
std::vector<Node *> nodesOf(std::vector<Node> &nodes, Node::Kind kind);

} // namespace fagen::random

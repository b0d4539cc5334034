// fagen: mistakes in one setting: its key, its value, its punctuation.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Mistakes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace fagen::random {

/// A random setting of one of the types; of any type without them. Null where there is none.
static Node *pickSetting(std::vector<Node> &nodes, Random &random, ArrayRef<OptionType> types = {}) {
  std::vector<Node *> settings = nodesOf(nodes, Node::Setting);
  erase_if(settings, [&](Node *node) { return !types.empty() && !is_contained(types, node->option->type); });
  return settings.empty() ? nullptr : random.pick(settings);
}

static bool mark(Node &node) { return node.isWrong = true; }

/// Gives a setting of the types a value.
template <typename Make>
static bool replaceValue(std::vector<Node> &nodes, Random &random, ArrayRef<OptionType> types, Make make) {
  Node *node = pickSetting(nodes, random, types);
  if (!node)
    return false;
  node->value = make(*node->option);
  return mark(*node);
}

/// A word with one letter doubled: no value of any key is another's.
static std::string misspell(StringRef word, Random &random) {
  const size_t at = random.below(word.size());
  return (word.take_front(at) + word.substr(at, 1) + word.drop_front(at)).str();
}

static const OptionValueInfo *pickValue(const OptionInfo &option, Random &random, ArgumentKind argument) {
  std::vector<const OptionValueInfo *> values;
  for (const OptionValueInfo &value : option.values)
    if (value.argument == argument)
      values.push_back(&value);
  return values.empty() ? nullptr : random.pick(values);
}

//===-- Keys
//------------------------------------------------------------------------------------------------------===//

static bool misspellKey(std::vector<Node> &nodes, Random &random) {
  Node *node = pickSetting(nodes, random);
  node->head = misspell(node->head, random);
  return mark(*node);
}

static bool keyOfOtherBlock(std::vector<Node> &nodes, Random &random) {
  Node *node = pickSetting(nodes, random);
  const bool isProblem = node->option->block == OptionBlock::Problem;
  const std::vector<StringRef> keys = optionNames(isProblem ? OptionBlock::Schedule : OptionBlock::Problem);
  node->head = random.pick(keys).str();
  return mark(*node);
}

/// A block that has a setting twice: the second is the mistake.
static bool setTwice(std::vector<Node> &nodes, Random &random) {
  std::vector<Node *> blocks;
  for (Node::Kind kind : {Node::Problem, Node::Schedule, Node::When})
    append_range(blocks, nodesOf(nodes, kind));
  erase_if(blocks, [](Node *block) { return block->body.empty() || !block->body.front().option; });
  Node &block = *random.pick(blocks);
  block.body.push_back(block.body.front());
  return mark(block.body.back());
}

//===-- Values
//----------------------------------------------------------------------------------------------------===//

static bool unknownValue(std::vector<Node> &nodes, Random &random) {
  return replaceValue(nodes, random, OptionType::Enum,
                      [&](const OptionInfo &option) { return misspell(random.pick(option.values).text, random); });
}

static bool numberForName(std::vector<Node> &nodes, Random &random) {
  static constexpr StringLiteral kNumbers[] = {"1", "16 x 16", "4 B", "64 : 64"};
  return replaceValue(nodes, random, {OptionType::Enum, OptionType::Switch},
                      [&](const OptionInfo &) { return random.pick(kNumbers).str(); });
}

static bool nameForNumber(std::vector<Node> &nodes, Random &random) {
  return replaceValue(nodes, random, {OptionType::Integer, OptionType::Bytes, OptionType::HeadDim, OptionType::Tile},
                      [&](const OptionInfo &) { return random.percent(50) ? "none" : "on"; });
}

static bool integerOutOfRange(std::vector<Node> &nodes, Random &random) {
  return replaceValue(nodes, random, OptionType::Integer, [&](const OptionInfo &option) {
    return std::to_string(random.percent(50) ? option.min - 1 : option.max + random.between(1, 100));
  });
}

static bool headDimOutOfRange(std::vector<Node> &nodes, Random &random) {
  return replaceValue(nodes, random, OptionType::HeadDim, [&](const OptionInfo &option) {
    const std::string wrong = std::to_string(option.max + option.multipleOf * random.between(1, 9));
    return random.percent(50) ? wrong : "64 : " + wrong;
  });
}

static bool headDimNoMultiple(std::vector<Node> &nodes, Random &random) {
  return replaceValue(nodes, random, OptionType::HeadDim, [&](const OptionInfo &option) {
    const unsigned right = option.multipleOf * random.between(1, 8);
    return std::to_string(right + random.between(1, option.multipleOf - 1));
  });
}

static bool tileOfOneDim(std::vector<Node> &nodes, Random &random) {
  return replaceValue(nodes, random, OptionType::Tile,
                      [&](const OptionInfo &) { return random.percent(50) ? "64" : "16 x 32 x 64"; });
}

static bool tileOutOfRange(std::vector<Node> &nodes, Random &random) {
  return replaceValue(nodes, random, OptionType::Tile, [&](const OptionInfo &option) {
    const std::string most = std::to_string(option.max + 16);
    return random.percent(50) ? "0 x 32" : random.percent(50) ? most + " x 32" : "16 x " + most;
  });
}

/// vector only: bytes need their unit, and there is no other.
static bool unitMissing(std::vector<Node> &nodes, Random &random) {
  return replaceValue(nodes, random, OptionType::Bytes,
                      [&](const OptionInfo &option) { return std::to_string(random.pick(option.allowed)); });
}

static bool unknownUnit(std::vector<Node> &nodes, Random &random) {
  static constexpr StringLiteral kUnits[] = {" KB", " b", "KB", "bytes", " MiB"};
  return replaceValue(nodes, random, OptionType::Bytes,
                      [&](const OptionInfo &) { return "16" + random.pick(kUnits).str(); });
}

static bool bytesNotAllowed(std::vector<Node> &nodes, Random &random) {
  static constexpr StringLiteral kValues[] = {"2 B", "12 B", "16 KiB", "32 B", "0 B"};
  return replaceValue(nodes, random, OptionType::Bytes, [&](const OptionInfo &) { return random.pick(kValues).str(); });
}

static bool unitOfInteger(std::vector<Node> &nodes, Random &random) {
  return replaceValue(nodes, random, OptionType::Integer,
                      [&](const OptionInfo &) { return random.percent(50) ? "2 B" : "1 KiB"; });
}

static bool switchByNumber(std::vector<Node> &nodes, Random &random) {
  static constexpr StringLiteral kValues[] = {"1", "true", "yes", "on(1)", "ON"};
  return replaceValue(nodes, random, OptionType::Switch,
                      [&](const OptionInfo &) { return random.pick(kValues).str(); });
}

/// Parentheses after a value that takes none.
static bool argumentTooMany(std::vector<Node> &nodes, Random &random) {
  Node *node = pickSetting(nodes, random, OptionType::Enum);
  const OptionValueInfo *value = pickValue(*node->option, random, ArgumentKind::None);
  if (!value)
    return false;
  node->value = value->text.str() + (random.percent(50) ? "(2)" : "(after_load)");
  return mark(*node);
}

/// The key's value that takes names, with wrong ones.
static bool wrongNames(std::vector<Node> &nodes, Random &random, StringRef arguments) {
  std::vector<Node *> settings = nodesOf(nodes, Node::Setting);
  erase_if(settings, [&](Node *node) { return !pickValue(*node->option, random, ArgumentKind::Names); });
  if (settings.empty())
    return false;
  Node &node = *random.pick(settings);
  node.value = pickValue(*node.option, random, ArgumentKind::Names)->text.str() + arguments.str();
  return mark(node);
}

static bool noPlaces(std::vector<Node> &nodes, Random &random) {
  return wrongNames(nodes, random, random.percent(50) ? "" : "()");
}

static bool unknownPlace(std::vector<Node> &nodes, Random &random) {
  return wrongNames(nodes, random, random.percent(50) ? "(after_load, before_load)" : "(after_lod, after_tile)");
}

static bool placeTwice(std::vector<Node> &nodes, Random &random) {
  return wrongNames(nodes, random, "(after_load, after_exp, after_load)");
}

//===-- Axes and tunes
//---------------------------------------------------------------------------------------------===//

/// Wraps a setting's value, where it is one plain value.
static bool wrapPlain(std::vector<Node> &nodes, Random &random, StringRef before, StringRef between, StringRef after,
                      OptionBlock block) {
  std::vector<Node *> settings = nodesOf(nodes, Node::Setting);
  erase_if(settings, [&](Node *node) {
    const StringRef value = node->value;
    return node->option->block != block || value.contains('[') || value.contains("tune");
  });
  if (settings.empty())
    return false;
  Node &node = *random.pick(settings);
  node.value = (before + node.value + (between.empty() ? "" : between + node.value) + after).str();
  return mark(node);
}

static OptionBlock anyBlock(Random &random) {
  return random.percent(50) ? OptionBlock::Problem : OptionBlock::Schedule;
}

static bool itemTwice(std::vector<Node> &nodes, Random &random) {
  return wrapPlain(nodes, random, "[", ", ", "]", anyBlock(random));
}

static bool nestedAxis(std::vector<Node> &nodes, Random &random) {
  return wrapPlain(nodes, random, "[[", "", "]]", anyBlock(random));
}

static bool nestedTune(std::vector<Node> &nodes, Random &random) {
  return wrapPlain(nodes, random, "tune(tune(", "), ", ")", OptionBlock::Schedule);
}

static bool tuneInProblem(std::vector<Node> &nodes, Random &random) {
  return wrapPlain(nodes, random, "tune(", ", ", ")", OptionBlock::Problem);
}

static bool openAxis(std::vector<Node> &nodes, Random &random) {
  return wrapPlain(nodes, random, "[", ", ", "", anyBlock(random));
}

static bool openTune(std::vector<Node> &nodes, Random &random) {
  return wrapPlain(nodes, random, "tune(", ", ", "", OptionBlock::Schedule);
}

//===-- Characters
//--------------------------------------------------------------------------------------------------===//

static bool hugeInteger(std::vector<Node> &nodes, Random &random) {
  static constexpr StringLiteral kValues[] = {"2147483648", "99999999999999999999999", "16 x 4294967296"};
  return replaceValue(nodes, random, {OptionType::Integer, OptionType::HeadDim, OptionType::Tile},
                      [&](const OptionInfo &) { return random.pick(kValues).str(); });
}

static bool lettersAfterNumber(std::vector<Node> &nodes, Random &random) {
  static constexpr StringLiteral kValues[] = {"64k", "16x", "2_", "4f", "0x10q"};
  return replaceValue(nodes, random, {OptionType::Integer, OptionType::HeadDim, OptionType::Tile},
                      [&](const OptionInfo &) { return random.pick(kValues).str(); });
}

static bool strayCharacter(std::vector<Node> &nodes, Random &random) {
  static constexpr StringLiteral kTexts[] = {" @", " #", " $x", " \"", " \xc3\xa9", " ?"};
  Node *node = pickSetting(nodes, random);
  node->value += random.pick(kTexts).str();
  return mark(*node);
}

static bool noValue(std::vector<Node> &nodes, Random &random) {
  Node *node = pickSetting(nodes, random);
  node->value.clear();
  return mark(*node);
}

static bool noEquals(std::vector<Node> &nodes, Random &random) {
  static constexpr StringLiteral kLinks[] = {"", ":", "==", ":="};
  Node *node = pickSetting(nodes, random);
  node->link = random.pick(kLinks).str();
  return mark(*node);
}

static bool noSemicolon(std::vector<Node> &nodes, Random &random) {
  Node *node = pickSetting(nodes, random);
  node->end = random.percent(70) ? "" : ",";
  return mark(*node);
}

std::vector<Mistake> valueMistakes() {
  return {{"misspelled-key", misspellKey},
          {"key-of-other-block", keyOfOtherBlock},
          {"key-twice", setTwice},
          {"unknown-value", unknownValue},
          {"number-for-name", numberForName},
          {"name-for-number", nameForNumber},
          {"integer-out-of-range", integerOutOfRange},
          {"head-dim-out-of-range", headDimOutOfRange},
          {"head-dim-no-multiple", headDimNoMultiple},
          {"tile-of-one-dim", tileOfOneDim},
          {"tile-out-of-range", tileOutOfRange},
          {"unit-missing", unitMissing},
          {"unknown-unit", unknownUnit},
          {"bytes-not-allowed", bytesNotAllowed},
          {"unit-of-integer", unitOfInteger},
          {"switch-by-number", switchByNumber},
          {"argument-too-many", argumentTooMany},
          {"no-places", noPlaces},
          {"unknown-place", unknownPlace},
          {"place-twice", placeTwice},
          {"item-twice", itemTwice},
          {"nested-axis", nestedAxis},
          {"nested-tune", nestedTune},
          {"tune-in-problem", tuneInProblem},
          {"open-axis", openAxis},
          {"open-tune", openTune},
          {"huge-integer", hugeInteger},
          {"letters-after-number", lettersAfterNumber},
          {"stray-character", strayCharacter},
          {"no-value", noValue},
          {"no-equals", noEquals},
          {"no-semicolon", noSemicolon}};
}

} // namespace fagen::random

// fagen: forms in f64, by interpreting their programs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "form.h"
#include "form_operators.h"

#include "lab/support/user_error.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <limits>
#include <sstream>
#include <tuple>

namespace fagen::lab {

/// What a form may name without declaring it, in the order of BoundForm::places.
enum Place : uint16_t {
  kScore,
  kBatch,
  kHead,
  kKvHead,
  kQuery,
  kKey,
  kQueryPlace,
  kBatches,
  kHeads,
  kKvHeads,
  kSeqQ,
  kSeqKv
};
static constexpr std::string_view kPlaces[] = {"s", "b",     "h",     "hk",       "q",     "k",
                                               "p", "batch", "heads", "kv_heads", "seq_q", "seq_kv"};

static constexpr size_t kMostExtents = 4;

static FormWord parseWord(const std::string &text, const std::vector<std::string> &lets) {
  if (const FormOperatorInfo *info = formOperator(text))
    return {FormWord::Operator, info->gives == FormOperatorInfo::Reals, uint16_t(info->op), info->operands, 0, text};
  if (text.size() > 1 && text[0] == '@') {
    const auto *place = std::find(std::begin(kPlaces), std::end(kPlaces), std::string_view(text).substr(1));
    if (place == std::end(kPlaces))
      throw UserError(fmt::format("unknown place '{}' in a form's program", text));
    const auto index = uint16_t(place - std::begin(kPlaces));
    return {FormWord::Place, index == kScore, index};
  }
  if (text.size() > 1 && text[0] == '$')
    return {FormWord::Param, false, 0, 0, 0, text.substr(1)};
  if (text.size() > 1 && text[0] == '=') {
    const auto let = std::find(lets.begin(), lets.end(), text.substr(1));
    if (let == lets.end())
      throw UserError(fmt::format("unknown let '{}' in a form's program", text));
    return {FormWord::Let, false, uint16_t(let - lets.begin()), 0, 0, text.substr(1)};
  }
  const size_t open = text.find('[');
  if (open != std::string::npos && open != 0 && text.back() == ']')
    return {FormWord::Read,      false, 0, uint16_t(std::strtoul(text.c_str() + open + 1, nullptr, 10)), 0,
            text.substr(0, open)};
  char *end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (*end != '\0')
    throw UserError(fmt::format("unknown word '{}' in a form's program", text));
  const bool isReal = text.find_first_of(".n") != std::string::npos; // 1.5, -inf
  return {FormWord::Number, isReal, 0, 0, number};
}

namespace {

/// Reads the programs of one form, each word with its type.
class Parser {
public:
  explicit Parser(const FormTexts &texts) : texts(texts) {}

  FormCode parse(const std::string &text) {
    FormCode code;
    std::vector<Known> stack;
    std::istringstream words(text);
    for (std::string written; words >> written;) {
      FormWord &word = code.emplace_back(parseWord(written, names));
      if (word.operands > stack.size())
        throw UserError(fmt::format("'{}' of a form's program '{}' lacks operands", written, text));
      complete(word, stack);
      stack.resize(stack.size() - word.operands);
      stack.push_back(given(word));
    }
    if (stack.size() > 1)
      throw UserError(fmt::format("a form's program '{}' leaves {} values, not one", text, stack.size()));
    return code;
  }

  FormCode parseLet(const std::string &name, const std::string &text) {
    FormCode code = parse(text);
    names.push_back(name);
    lets.push_back(code.empty() ? Known() : given(code.back()));
    return code;
  }

private:
  /// What is known of a value before there are numbers.
  struct Known {
    bool isReal = false, isOfKey = false;
  };

  void complete(FormWord &word, const std::vector<Known> &stack) const {
    for (size_t i = stack.size() - word.operands; i < stack.size(); ++i)
      word.isOfKey |= stack[i].isOfKey;
    if (word.kind == FormWord::Place)
      word.isOfKey = word.index == kKey || word.index == kScore;
    else if (word.kind == FormWord::Param || word.kind == FormWord::Read)
      word.isReal = texts.reals.count(word.name) != 0;
    else if (word.kind == FormWord::Let)
      std::tie(word.isReal, word.isOfKey) = std::pair(lets[word.index].isReal, lets[word.index].isOfKey);
    else if (word.kind == FormWord::Operator)
      word.isReal = stack.back().isReal; // the last operand's: of a select that of its arms
  }

  static Known given(const FormWord &word) {
    if (word.kind != FormWord::Operator)
      return {word.isReal, word.isOfKey};
    const FormOperatorInfo &info = *formOperator(word.name);
    return {info.gives == FormOperatorInfo::Reals || (info.gives == FormOperatorInfo::OperandType && word.isReal),
            word.isOfKey};
  }

  const FormTexts &texts;
  std::vector<std::string> names; ///< of lets so far
  std::vector<Known> lets;        ///< what they give
};

} // namespace

FormProgram::FormProgram(const FormTexts &texts) {
  Parser parser(texts);
  for (const auto &[name, text] : texts.lets)
    unbound.lets.push_back({parser.parseLet(name, text)});
  unbound.scoreCode = parser.parse(texts.score);
  unbound.maskCode = parser.parse(texts.mask);
  unbound.sinkCode = parser.parse(texts.sink);
  // What a program names, and what that names: lets name those before them.
  const std::pair<const FormCode *, BoundForm::Needs> programs[] = {{&unbound.scoreCode, &BoundForm::Let::ofScore},
                                                                    {&unbound.maskCode, &BoundForm::Let::ofMask},
                                                                    {&unbound.sinkCode, &BoundForm::Let::ofSink}};
  for (const auto &[code, needs] : programs) {
    const auto mark = [&, needs = needs](const FormCode &words) {
      for (const FormWord &word : words)
        if (word.kind == FormWord::Let)
          unbound.lets[word.index].*needs = true;
    };
    mark(*code);
    for (size_t i = unbound.lets.size(); i-- > 0;)
      if (unbound.lets[i].*needs)
        mark(unbound.lets[i].code);
  }
}

static const auto &argument(const auto &arguments, const std::string &name) {
  const auto found = arguments.find(name);
  if (found == arguments.end())
    throw UserError(fmt::format("the form's param '{}' is not given", name));
  return found->second;
}

BoundForm FormProgram::bind(const Shape &shape, const FormArguments &arguments) const {
  BoundForm bound = unbound;
  bound.shape = shape;
  size_t depth = 1;
  const auto resolve = [&](FormCode &code) {
    depth = std::max(depth, code.size());
    for (FormWord &word : code) {
      if (word.kind == FormWord::Param) {
        word.kind = FormWord::Number;
        word.number = argument(arguments.numbers, word.name);
      } else if (word.kind == FormWord::Read) {
        const FormTensor &tensor = argument(arguments.tensors, word.name);
        if (tensor.extents.size() != word.operands || word.operands > kMostExtents)
          throw UserError(fmt::format("the form's tensor '{}' has {} extents, not {}", word.name, word.operands,
                                      tensor.extents.size()));
        word.index = uint16_t(bound.tensors.size());
        bound.tensors.push_back(&tensor);
      }
    }
  };
  for (BoundForm::Let &let : bound.lets)
    resolve(let.code);
  for (FormCode *code : {&bound.scoreCode, &bound.maskCode, &bound.sinkCode})
    resolve(*code);
  bound.numbers.resize(bound.lets.size());
  bound.values.resize(bound.lets.size());
  bound.numberStack.resize(depth);
  bound.valueStack.resize(depth);
  const std::pair<Place, int64_t> sizes[] = {{kBatches, shape.batch},
                                             {kHeads, shape.heads},
                                             {kKvHeads, shape.kvHeads},
                                             {kSeqQ, shape.seqQ},
                                             {kSeqKv, shape.seqKv}};
  for (auto [place, size] : sizes)
    bound.places[place] = double(size);
  return bound;
}

void BoundForm::setPlaces(const FormElement &element) {
  places[kScore] = element.score;
  places[kBatch] = double(element.batch);
  places[kHead] = double(element.head);
  places[kKvHead] = double(element.head / std::max<int64_t>(shape.heads / std::max<int64_t>(shape.kvHeads, 1), 1));
  places[kQuery] = double(element.query);
  places[kKey] = double(element.key);
  places[kQueryPlace] = double(element.query + shape.seqKv - shape.seqQ);
}

/// Indices outside are taken as the nearest inside; an empty tensor reads as 0.
static double read(const FormTensor &tensor, const double *indices) {
  int64_t at = 0;
  for (const int64_t extent : tensor.extents) {
    if (extent == 0)
      return 0;
    at = at * extent + std::clamp<int64_t>(static_cast<int64_t>(*indices++), 0, extent - 1);
  }
  return tensor.values.at(size_t(at));
}

static FormValue read(const FormTensor &tensor, const FormValue *indices) {
  std::array<double, kMostExtents> exact{};
  bool isDecided = true;
  for (size_t i = 0; i < tensor.extents.size(); ++i) {
    exact[i] = indices[i].value;
    isDecided = isDecided && indices[i].rounding == 0;
  }
  return {read(tensor, exact.data()), isDecided ? 0 : std::numeric_limits<double>::infinity()};
}

static double apply(const FormWord &word, const double *operands) {
  return applyFormOperator(FormOperator(word.index), operands);
}
/// A kernel has integers that grow along the keys in f32 once for a thread, and adds the keys' offsets to that.
static constexpr double kOffsetsOfThread = 256;

static FormValue apply(const FormWord &word, const FormValue *operands) {
  FormValue value = applyFormOperator(FormOperator(word.index), word.isReal, operands);
  if (FormOperator(word.index) == FormOperator::ToF32 && word.isOfKey && !word.isReal)
    value.rounding += kFormRounding * kOffsetsOfThread;
  return value;
}

static void setNumber(const FormWord &word, double &value) { value = word.number; }
/// A literal that f32 does not hold is rounded; params are given in f32.
static void setNumber(const FormWord &word, FormValue &value) {
  const bool isExact = !word.isReal || double(float(word.number)) == word.number || std::isinf(word.number);
  value = {word.number, isExact ? 0 : kFormRounding * std::abs(word.number)};
}

template <typename Value>
Value BoundForm::evaluate(const FormCode &code, const Value &score, const std::vector<Value> &letValues) {
  Value *top = nullptr; // one past the last
  if constexpr (std::is_same_v<Value, double>)
    top = numberStack.data();
  else
    top = valueStack.data();
  for (const FormWord &word : code) {
    top -= word.operands;
    switch (word.kind) {
    case FormWord::Place:
      *top = word.index == kScore ? score : Value{places[word.index]};
      break;
    case FormWord::Let:
      *top = letValues[word.index];
      break;
    case FormWord::Read:
      *top = read(*tensors[word.index], top);
      break;
    case FormWord::Operator:
      *top = apply(word, top);
      break;
    default:
      setNumber(word, *top);
    }
    ++top;
  }
  return *(top - 1);
}

template <typename Value> Value BoundForm::run(const FormCode &code, Needs needs, const Value &score) {
  std::vector<Value> *letValues = nullptr;
  if constexpr (std::is_same_v<Value, double>)
    letValues = &numbers;
  else
    letValues = &values;
  for (size_t i = 0; i < lets.size(); ++i)
    if (lets[i].*needs)
      (*letValues)[i] = evaluate(lets[i].code, score, *letValues);
  return evaluate(code, score, *letValues);
}

double BoundForm::score(const FormElement &element) {
  if (scoreCode.empty())
    return element.score;
  setPlaces(element);
  return run(scoreCode, &Let::ofScore, element.score);
}

bool BoundForm::mask(const FormElement &element) {
  if (maskCode.empty())
    return true;
  setPlaces(element);
  return run(maskCode, &Let::ofMask, element.score) != 0;
}

std::optional<double> BoundForm::sink(const FormElement &element) {
  if (sinkCode.empty())
    return std::nullopt;
  setPlaces(element);
  return run(sinkCode, &Let::ofSink, element.score);
}

FormValue BoundForm::scoreWithError(const FormElement &element, double scoreRounding) {
  if (scoreCode.empty())
    return {element.score, 0, 0, 1};
  setPlaces(element);
  return run(scoreCode, &Let::ofScore, FormValue{element.score, scoreRounding, 0, 1});
}

FormValue BoundForm::maskWithError(const FormElement &element) {
  if (maskCode.empty())
    return {1};
  setPlaces(element);
  return run(maskCode, &Let::ofMask, FormValue{});
}

FormValue BoundForm::sinkWithError(const FormElement &element) {
  setPlaces(element);
  return run(sinkCode, &Let::ofSink, FormValue{});
}

} // namespace fagen::lab

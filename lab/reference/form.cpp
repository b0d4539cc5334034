// fagen: forms in f64: reads their programs, and gives them a problem's numbers and tensors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "form.h"
#include "criteria.h"
#include "form_operators.h"

#include "lab/support/user_error.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <sstream>

namespace fagen::lab {

static_assert(kScoreDoubt == kTolerances.lse);

static constexpr std::string_view kPlaces[] = {"s", "b",     "h",     "hk",       "q",     "k",
                                               "p", "batch", "heads", "kv_heads", "seq_q", "seq_kv"};
static_assert(std::size(kPlaces) == kFormPlaces);

namespace {

/// What is known of a value before there are numbers.
struct Known {
  bool isReal = false, isOfKey = false;
};

/// A word as it is written, and what it gives.
struct ReadWord {
  FormWord word;
  Known given;
  std::string param; ///< that it names, or nothing
};

/// Reads the programs of one form, each word with its type.
class Parser {
public:
  explicit Parser(const FormTexts &texts) : texts(texts) {}

  /// Adds the program's words after those that are there.
  FormCode parse(const std::string &text) {
    FormCode code{static_cast<int>(words.size()), 0};
    std::vector<Known> stack;
    std::istringstream written(text);
    for (std::string word; written >> word; ++code.size) {
      ReadWord read = parseWord(word);
      const size_t operands = read.word.operands;
      if (operands > stack.size())
        throw UserError(fmt::format("'{}' of a form's program '{}' lacks operands", word, text));
      complete(read, stack.data() + stack.size() - operands);
      stack.resize(stack.size() - operands);
      stack.push_back(read.given);
      deepest = std::max(deepest, static_cast<int>(stack.size()));
      words.push_back(read.word);
      params.push_back(std::move(read.param));
    }
    if (stack.size() > 1)
      throw UserError(fmt::format("a form's program '{}' leaves {} values, not one", text, stack.size()));
    last = stack.empty() ? Known() : stack.back();
    return code;
  }

  FormCode parseLet(const std::string &name, const std::string &text) {
    const FormCode code = parse(text);
    lets.emplace_back(name, last);
    return code;
  }

  std::vector<FormWord> words;
  std::vector<std::string> params; ///< that the words name
  int deepest = 1;                 ///< stack of a program

private:
  ReadWord parseWord(const std::string &text) const {
    const auto isReal = [&](const std::string &param) { return texts.reals.count(param) != 0; };
    if (const FormOperatorInfo *info = formOperator(text))
      return {{FormWord::Operator, false, false, static_cast<uint16_t>(info->op), info->operands, 0},
              {info->gives == FormOperatorInfo::Reals, false},
              {}};
    if (text.size() > 1 && text[0] == '@')
      return placeOf(text);
    if (text.size() > 1 && text[0] == '$') {
      const std::string name = text.substr(1);
      return {{FormWord::Number, isReal(name), false, 0, 0, 0}, {isReal(name), false}, name};
    }
    if (text.size() > 1 && text[0] == '=')
      return letOf(text);
    const size_t open = text.find('[');
    if (open != std::string::npos && open != 0 && text.back() == ']') {
      const std::string name = text.substr(0, open);
      const auto rank = static_cast<uint16_t>(std::strtoul(text.c_str() + open + 1, nullptr, 10));
      return {{FormWord::Read, isReal(name), false, 0, rank, 0}, {isReal(name), false}, name};
    }
    char *end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    if (*end != '\0')
      throw UserError(fmt::format("unknown word '{}' in a form's program", text));
    const bool isWrittenReal = text.find_first_of(".n") != std::string::npos; // 1.5, -inf
    return {{FormWord::Number, isWrittenReal, false, 0, 0, number}, {isWrittenReal, false}, {}};
  }

  static ReadWord placeOf(const std::string &text) {
    const auto *place = std::find(std::begin(kPlaces), std::end(kPlaces), std::string_view(text).substr(1));
    if (place == std::end(kPlaces))
      throw UserError(fmt::format("unknown place '{}' in a form's program", text));
    const auto index = static_cast<uint16_t>(place - std::begin(kPlaces));
    const bool isScore = FormPlace(index) == FormPlace::Score, isKey = FormPlace(index) == FormPlace::Key;
    return {{FormWord::Place, isScore, isScore || isKey, index, 0, 0}, {isScore, isScore || isKey}, {}};
  }

  ReadWord letOf(const std::string &text) const {
    const auto let =
        std::find_if(lets.begin(), lets.end(), [&](const auto &one) { return one.first == text.substr(1); });
    if (let == lets.end())
      throw UserError(fmt::format("unknown let '{}' in a form's program", text));
    const auto index = static_cast<uint16_t>(let - lets.begin());
    return {{FormWord::Let, let->second.isReal, let->second.isOfKey, index, 0, 0}, let->second, {}};
  }

  /// What follows from the operands.
  static void complete(ReadWord &read, const Known *operands) {
    FormWord &word = read.word;
    for (size_t i = 0; i < word.operands; ++i)
      read.given.isOfKey |= operands[i].isOfKey;
    word.isOfKey = read.given.isOfKey;
    if (word.kind != FormWord::Operator)
      return;
    word.isReal = operands[word.operands - 1].isReal; // of a select that of its arms
    read.given.isReal |= givesOperandType(FormOperator(word.index)) && word.isReal;
  }

  const FormTexts &texts;
  std::vector<std::pair<std::string, Known>> lets; ///< so far, and what they give
  Known last;                                      ///< what the last program gives
};

/// The bits of what `code` needs, at the lets that it names.
void mark(FormData &data, const FormCode &code, unsigned part) {
  for (int i = code.begin; i < code.begin + code.size; ++i)
    if (data.words[i].kind == FormWord::Let)
      data.lets[data.words[i].index].needs |= part;
}

} // namespace

FormProgram::FormProgram(const FormTexts &texts) {
  Parser parser(texts);
  for (const auto &[name, text] : texts.lets)
    unbound.lets.push_back({parser.parseLet(name, text), 0});
  FormView &view = unbound.view;
  view.score = parser.parse(texts.score);
  view.mask = parser.parse(texts.mask);
  view.sink = parser.parse(texts.sink);
  view.vScale = parser.parse(texts.vScale);
  unbound.words = std::move(parser.words);
  unbound.depth = parser.deepest;
  names = std::move(parser.params);
  for (const auto &[code, part] : {std::pair{view.score, kOfScore}, {view.mask, kOfMask}, {view.sink, kOfSink}, {view.vScale, kOfVScale}})
    mark(unbound, code, part);
  for (size_t i = unbound.lets.size(); i-- > 0;) // lets name those before them
    mark(unbound, unbound.lets[i].code, unbound.lets[i].needs);
}

static const auto &argument(const auto &arguments, const std::string &name) {
  const auto found = arguments.find(name);
  if (found == arguments.end())
    throw UserError(fmt::format("the form's param '{}' is not given", name));
  return found->second;
}

static FormTensorView viewOf(const std::string &name, const FormTensor &tensor, size_t indices) {
  if (tensor.extents.size() != indices || indices > kMostExtents)
    throw UserError(fmt::format("the form's tensor '{}' has {} extents, not {}", name, indices, tensor.extents.size()));
  FormTensorView view{tensor.values.data(), {}, static_cast<int>(indices)};
  int64_t count = 1;
  for (size_t i = 0; i < indices; ++i)
    count *= view.extents[i] = tensor.extents[i];
  if (count != static_cast<int64_t>(tensor.values.size()))
    throw UserError(fmt::format("the form's tensor '{}' has {} values, not {}", name, tensor.values.size(), count));
  return view;
}

BoundForm FormProgram::bind(const Shape &shape, const FormArguments &arguments) const {
  auto bound = std::make_shared<FormData>(unbound);
  for (size_t i = 0; i < names.size(); ++i) {
    FormWord &word = bound->words[i];
    if (names[i].empty())
      continue;
    if (word.kind == FormWord::Number) {
      word.number = argument(arguments.numbers, names[i]);
      continue;
    }
    word.index = static_cast<uint16_t>(bound->tensors.size());
    bound->tensors.push_back(viewOf(names[i], argument(arguments.tensors, names[i]), word.operands));
  }
  FormView &view = bound->view;
  view.words = bound->words.data();
  view.lets = bound->lets.data();
  view.tensors = bound->tensors.data();
  view.letCount = static_cast<int>(bound->lets.size());
  view.batches = shape.batch;
  view.heads = shape.heads;
  view.kvHeads = shape.kvHeads;
  view.seqQ = shape.seqQ;
  view.seqKv = shape.seqKv;
  return BoundForm(std::move(bound));
}

BoundForm::BoundForm(std::shared_ptr<const FormData> given)
    : data(std::move(given)), numberLets(data->lets.size()), numberStack(data->depth), valueLets(data->lets.size()),
      valueStack(data->depth) {}

double BoundForm::score(const FormElement &element) { return numbers().score(element, element.score); }

bool BoundForm::mask(const FormElement &element) { return numbers().mask(element) != 0; }

std::optional<double> BoundForm::sink(const FormElement &element) {
  return hasSink() ? std::optional(numbers().sink(element)) : std::nullopt;
}

double BoundForm::vScale(const FormElement &element) { return numbers().vScale(element); }

FormValue BoundForm::scoreWithError(const FormElement &element, double scoreRounding) {
  FormRun<FormValue> run = values();
  return lab::scoreWithError(run, data->view, element, scoreRounding);
}

FormValue BoundForm::maskWithError(const FormElement &element) { return values().mask(element); }

FormValue BoundForm::sinkWithError(const FormElement &element) { return values().sink(element); }

} // namespace fagen::lab

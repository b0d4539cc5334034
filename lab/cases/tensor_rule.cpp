// fagen: the values of a form's tensor as a case gives them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tensor_rule.h"
#include "form_values.h"
#include "lab/support/random.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fstream>
#include <sstream>

namespace fagen::lab {

bool isTensorRule(std::string_view text) { return text.find(':') != std::string_view::npos; }

std::string tensorRules() { return "file:PATH, all:X, ramp:X:STEP, runs:X:LENGTH:STEP or spread:LOW:HIGH"; }

namespace {

constexpr uint32_t kRuleStream = 192; ///< of Philox; those of drawn arguments are below

/// A tensor that is being filled by one rule.
class Filling {
public:
  Filling(const std::string &rule, const FormParam &param, FormTensor &tensor)
      : rule(rule), param(param), tensor(tensor), words(split(rule, ':')) {}

  void fill(uint64_t seed, uint32_t index) {
    if (words[0] == "file")
      read(rule.substr(words[0].size() + 1));
    else if (words[0] == "all")
      all();
    else if (words[0] == "ramp")
      ramp();
    else if (words[0] == "runs")
      runs();
    else if (words[0] == "spread")
      spread(seed, kRuleStream + index);
    else
      fail(fmt::format("unknown rule '{}'; a tensor takes {}", words[0], tensorRules()));
    requireValues();
  }

private:
  [[noreturn]] void fail(const std::string &what) const {
    throw UserError(fmt::format("arg {}={}: {}", param.name, rule, what));
  }

  /// Infinite ones are numbers here: a bias may hide a key.
  double number(std::string_view text) const {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || std::isnan(value))
      fail(fmt::format("'{}' is not a number", text));
    return value;
  }
  /// The words after the rule's name, so many of them.
  std::vector<double> numbers(size_t least, size_t most) const {
    const size_t count = words.size() - 1;
    if (count < least || count > most)
      fail(fmt::format("'{}' has {} numbers; it takes {}", words[0], count,
                       least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most)));
    std::vector<double> values;
    for (size_t i = 1; i < words.size(); ++i)
      values.push_back(number(words[i]));
    return values;
  }

  void read(const std::string &path) {
    std::ifstream file(path);
    std::ostringstream text;
    if (!file || !(text << file.rdbuf()))
      fail(fmt::format("cannot read '{}'", path));
    std::istringstream stream(text.str());
    size_t count = 0;
    for (std::string word; stream >> word; ++count)
      if (const double value = number(word); count < tensor.values.size())
        tensor.values[count] = value;
    if (count != tensor.values.size())
      fail(fmt::format("the file has {} numbers; the tensor, [{}], has {} elements", count,
                       fmt::join(tensor.extents, ", "), tensor.values.size()));
  }

  void all() { std::fill(tensor.values.begin(), tensor.values.end(), numbers(1, 1)[0]); }

  void ramp() {
    const size_t rank = tensor.extents.size();
    const std::vector<double> given = numbers(2, rank + 1);
    std::vector<double> steps(rank, 0);
    if (given.size() == 2)
      steps.back() = given[1];
    else if (given.size() == rank + 1)
      std::copy(given.begin() + 1, given.end(), steps.begin());
    else
      fail(fmt::format("a ramp has one step, or one for each of the {} indices", rank));
    for (size_t i = 0; i < tensor.values.size(); ++i) {
      double value = given[0];
      int64_t rest = int64_t(i);
      for (size_t at = rank; at-- > 0; rest /= tensor.extents[at])
        value += steps[at] * double(rest % tensor.extents[at]);
      tensor.values[i] = value;
    }
  }

  void runs() {
    const std::vector<double> given = numbers(3, 4);
    if (!(given[1] >= 1) || given[1] != std::floor(given[1]))
      fail(fmt::format("runs have a length of 1 or more, not {}", given[1]));
    const double later = given.size() > 3 ? given[3] : 0;
    for (int64_t i = 0; i < int64_t(tensor.values.size()); ++i) {
      const double at = double(i % tensor.extents.back()) - later * double(i / tensor.extents.back());
      tensor.values[size_t(i)] = given[0] + given[2] * std::floor(at / given[1]);
    }
  }

  /// Of a block the first element's draw counts.
  void spread(uint64_t seed, uint32_t stream) {
    const std::vector<double> given = numbers(2, 2 + std::min<size_t>(tensor.extents.size(), 2));
    const double low = given[0], high = given[1];
    if (!(low <= high) || std::isinf(low) || std::isinf(high))
      fail("it takes two finite numbers, the lower one first");
    for (size_t i = 2; i < given.size(); ++i)
      if (!(given[i] >= 1) || given[i] != std::floor(given[i]))
        fail(fmt::format("a block has 1 or more elements, not {}", given[i]));
    const int64_t columns = tensor.extents.back(), rows = given.size() > 3 ? tensor.extents.rbegin()[1] : 1;
    const int64_t width = given.size() > 2 ? int64_t(given.back()) : 1,
                  height = given.size() > 3 ? int64_t(given[2]) : 1;
    for (int64_t i = 0; i < int64_t(tensor.values.size()); ++i) {
      const uint64_t first = uint64_t(i - i % columns % width - i / columns % rows % height * columns);
      const double share = philox({uint32_t(first), uint32_t(first >> 32), stream, 3}, seed)[0] / 4294967295.0;
      const double value = low + (high - low) * share;
      tensor.values[size_t(i)] = std::clamp(param.isReal() ? value : std::round(value), low, high);
    }
  }

  std::string placeOf(size_t element) const {
    std::vector<int64_t> place(tensor.extents.size());
    int64_t rest = int64_t(element);
    for (size_t at = place.size(); at-- > 0; rest /= tensor.extents[at])
      place[at] = rest % tensor.extents[at];
    return fmt::format("element [{}]", fmt::join(place, ", "));
  }

  /// Of the param's range, integers where it is one, held by its type, ascending where it promises so.
  void requireValues() {
    for (size_t i = 0; i < tensor.values.size(); ++i) {
      double &value = tensor.values[i];
      if (!(value >= param.low && value <= param.high))
        fail(fmt::format("{} is {}; the param's range is {} to {}", placeOf(i), value, param.low, param.high));
      if (!param.isReal() && value != std::floor(value))
        fail(fmt::format("{} is {}; the param has integers", placeOf(i), value));
      const double held = roundedToElement(param, value);
      if (std::isinf(held) && !std::isinf(value))
        fail(fmt::format("{} is {}, which its type does not hold", placeOf(i), value));
      value = held;
      if (param.isAscending && int64_t(i) % tensor.extents.back() && value < tensor.values[i - 1])
        fail(fmt::format("{} is {} after {}; the param ascends along its last index", placeOf(i), value,
                         tensor.values[i - 1]));
    }
  }

  const std::string &rule;
  const FormParam &param;
  FormTensor &tensor;
  const std::vector<std::string> words;
};

} // namespace

void fillByRule(const std::string &rule, const FormParam &param, uint64_t seed, uint32_t index, FormTensor &tensor) {
  Filling(rule, param, tensor).fill(seed, index);
}

} // namespace fagen::lab

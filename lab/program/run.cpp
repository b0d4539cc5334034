// fagen: a program's inputs, its runs, and the comparison with the reference.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "run.h"
#include "promises.h"

#include "lab/support/parallel.h"
#include "lab/support/random.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <limits>

namespace fagen::lab {

namespace {

ProgramMemory makeMemory(const ProgramPlan &plan, const Sizes &sizes, uint64_t seed) {
  ProgramMemory memory;
  for (uint32_t i = 0; i < plan.buffers.size(); ++i) {
    const ProgramBuffer &buffer = plan.buffers[i];
    const int64_t count = elementsOf(buffer, sizes), bytes = bytesOf(buffer.element);
    std::vector<unsigned char> &place = memory.emplace_back(static_cast<size_t>(count * bytes));
    if (buffer.isZeroed)
      continue;
    const NormalStream normals(seed, i);
    parallelFor(count, 8192, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n)
        storeElement(&place[static_cast<size_t>(n * bytes)], buffer.element,
                     buffer.isWritten ? std::nanf("") : normals.at(static_cast<uint64_t>(n)));
    });
  }
  return memory;
}

/// Over what makeMemory() left.
void fill(const Fill &fill, const ProgramPlan &plan, const Sizes &sizes, ProgramMemory &memory) {
  const auto buffer = std::find_if(plan.buffers.begin(), plan.buffers.end(),
                                   [&](const ProgramBuffer &each) { return each.name == fill.buffer.buffer; });
  std::vector<unsigned char> &bytes = memory[static_cast<size_t>(buffer - plan.buffers.begin())];
  std::vector<std::string> names;
  for (const IndexExpr &place : fill.buffer.places)
    names.push_back(place.name);
  const std::vector<int64_t> shape = shapeOf(*buffer, sizes);
  for (int64_t n = 0; n < elementsOf(*buffer, sizes); ++n) {
    std::vector<int64_t> index(shape.size());
    for (int64_t d = static_cast<int64_t>(shape.size()) - 1, rest = n; d >= 0; rest /= shape[d--])
      index[d] = rest % shape[d];
    const int64_t value = evaluate(fill.value, names, index, {});
    if (!isInteger(buffer->element)) {
      storeElement(&bytes[static_cast<size_t>(n * bytesOf(buffer->element))], buffer->element,
                   static_cast<float>(value));
      continue;
    }
    const bool isSigned = buffer->element == Element::I32;
    const int64_t low = isSigned ? std::numeric_limits<int32_t>::min() : 0,
                  high = isSigned ? std::numeric_limits<int32_t>::max() : std::numeric_limits<uint32_t>::max();
    if (value < low || value > high)
      throw UserError(fmt::format("element {} of '{}' would be {}, which is not {} {}", n, buffer->name, value,
                                  isSigned ? "an" : "a", nameOf(buffer->element)));
    const auto word = static_cast<uint32_t>(value);
    std::memcpy(&bytes[static_cast<size_t>(n) * sizeof(word)], &word, sizeof(word));
  }
}

/// Rows begin where one access may.
void requireAlignment(const ProgramPlan &plan, const Sizes &sizes) {
  for (const ProgramBuffer &buffer : plan.buffers) {
    const int64_t bytes = buffer.shape.back().evaluate(sizes) * bytesOf(buffer.element);
    if (buffer.shape.size() > 1 && bytes % buffer.alignment != 0)
      throw UserError(fmt::format("rows of '{}' are {} bytes long; {} takes multiples of {}", buffer.name, bytes,
                                  plan.name, buffer.alignment));
  }
}

std::map<std::string, TensorValues> readMemory(const ProgramPlan &plan, const Sizes &sizes,
                                               const ProgramMemory &memory) {
  std::map<std::string, TensorValues> tensors;
  for (size_t i = 0; i < memory.size(); ++i) {
    const ProgramBuffer &buffer = plan.buffers[i];
    TensorValues &tensor = tensors[buffer.name];
    tensor.element = buffer.element;
    tensor.shape = shapeOf(buffer, sizes);
    tensor.values.resize(memory[i].size() / bytesOf(buffer.element));
    for (size_t n = 0; n < tensor.values.size(); ++n)
      tensor.values[n] = loadElement(&memory[i][n * bytesOf(buffer.element)], buffer.element);
  }
  return tensors;
}

Element elementOf(const ProgramPlan &plan, const std::string &name) {
  return std::find_if(plan.buffers.begin(), plan.buffers.end(), [&](const auto &b) { return b.name == name; })->element;
}

/// Elements to compare: all of few, else as many as asked for, the first and the last among them.
std::vector<int64_t> sampleOf(int64_t count, int64_t wanted, uint64_t seed) {
  std::vector<int64_t> sample;
  for (int64_t n = 0; n < std::min(count, wanted); ++n) {
    const auto words = philox({static_cast<uint32_t>(n), 0, 0, 0}, seed);
    sample.push_back(count <= wanted ? n
                     : n == 0        ? 0
                     : n == 1        ? count - 1
                                     : static_cast<int64_t>((uint64_t{words[0]} << 32 | words[1]) % count));
  }
  return sample;
}

void compare(const Statement &statement, const ProgramPlan &plan, const std::map<std::string, TensorValues> &tensors,
             const Sizes &sizes, const ProgramOptions &options, uint64_t seed, ProgramReport &report) {
  const Evaluator evaluator(statement, tensors, sizes);
  const std::vector<int64_t> sample = sampleOf(evaluator.elements(), options.sample, seed);
  const Element element = elementOf(plan, statement.result.buffer);
  const std::vector<double> &found = tensors.at(statement.result.buffer).values;
  std::vector<double> errors(sample.size()); // over what is allowed
  std::vector<double> expected(sample.size());
  std::vector<int64_t> places(sample.size());
  parallelFor(static_cast<int64_t>(sample.size()), 16, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const ExpectedElement truth = evaluator.at(sample[n]);
      places[n] = evaluator.placeOf(sample[n]);
      const double of = found[places[n]], wanted = saturated(element, truth.value);
      expected[n] = wanted;
      errors[n] = of == wanted ? 0 : std::abs(of - wanted) / allowedError(truth, element); // infinities, too
    }
  });
  ComparedResult result{statement.result.buffer, static_cast<int64_t>(sample.size()), 0, 0};
  for (size_t n = 0; n < sample.size(); ++n) {
    const bool isRight = errors[n] <= 1; // a NaN is wrong
    result.worst = std::isnan(errors[n]) ? INFINITY : std::max(result.worst, errors[n]);
    if (!isRight && result.wrong++ == 0)
      report.failures.push_back({"error", fmt::format("{}: element {} is {}, not {}", result.buffer, places[n],
                                                      found[places[n]], expected[n])});
  }
  report.results.push_back(std::move(result));
}

/// Counters are 0 again, so that the next run finds what this one did.
void checkRestored(const ProgramPlan &plan, const ProgramMemory &memory, std::vector<Failure> &failures) {
  for (size_t i = 0; i < memory.size(); ++i)
    if (plan.buffers[i].isRestored &&
        std::any_of(memory[i].begin(), memory[i].end(), [](unsigned char byte) { return byte != 0; }))
      failures.push_back(
          {"counter", fmt::format("'{}' is not 0 after the run, which the next one needs", plan.buffers[i].name)});
}

} // namespace

std::vector<ProgramTime> ProgramRunner::time(const ProgramPlan &, const Sizes &, const ProgramMemory &,
                                             const ProgramTiming &) {
  throw UserError(fmt::format("{} times nothing; a GPU does (--device gpu)", name()));
}

ProgramReport runProgram(const ProgramPlan &plan, ProgramRunner &runner, const ProgramOptions &options) {
  Sizes sizes = options.sizes;
  sizes["sms"] = runner.sms();
  const std::vector<Statement> statements =
      options.reference.empty() ? std::vector<Statement>() : parseReference(options.reference, plan);
  std::vector<Fill> fills;
  for (const std::string &text : options.fills)
    fills.push_back(parseFill(text, plan));
  requireAlignment(plan, sizes);
  ProgramReport report;
  ProgramMemory memory;
  for (int attempt = 0; attempt < options.attempts && report.failures.empty(); ++attempt) {
    const uint64_t seed = options.seed + static_cast<uint64_t>(attempt);
    memory = makeMemory(plan, sizes, seed);
    for (const Fill &each : fills)
      fill(each, plan, sizes, memory);
    for (size_t i = 0; i < memory.size(); ++i)
      requirePromises(plan.buffers[i], shapeOf(plan.buffers[i], sizes), memory[i]);
    report.failures = runner.run(plan, sizes, memory, attempt);
    if (report.failures.empty())
      checkRestored(plan, memory, report.failures);
    if (!report.failures.empty())
      break;
    const std::map<std::string, TensorValues> tensors = readMemory(plan, sizes, memory);
    report.clocks = readClocks(plan, sizes, memory, report.failures);
    for (const Statement &statement : statements)
      compare(statement, plan, tensors, sizes, options, seed, report);
  }
  if (options.isTimed && report.failures.empty())
    report.times = runner.time(plan, sizes, memory, options.timing);
  return report;
}

} // namespace fagen::lab

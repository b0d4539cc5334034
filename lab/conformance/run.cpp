// fagen: runs conformance cases and judges what comes out.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "accumulation.h"
#include "lab/kernels/kernel_text.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fagen::lab {

namespace {

constexpr size_t kExamples = 5;

std::string describe(const ConformanceCase &c, unsigned round, size_t index, const WordList &in, const WordList &out) {
  const size_t element = index / c.results;
  std::string text = fmt::format("round {}, word {}: ", round, index);
  if (c.operands <= 4)
    text += fmt::format("({:#010x}) gives ",
                        fmt::join(&in[element * c.operands], &in[element * c.operands] + c.operands, ", "));
  return text + fmt::format("{:#010x}", out[index]);
}

void judgeExact(const ConformanceCase &c, unsigned round, const WordList &in, const WordList &out,
                const WordList &right, Measurement &m) {
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] == right[i])
      continue;
    ++m.wrong;
    if (m.examples.size() < kExamples)
      m.examples.push_back(fmt::format("{}, right is {:#010x}", describe(c, round, i, in, out), right[i]));
  }
}

void judgeBounded(const ConformanceCase &c, unsigned round, const WordList &in, const WordList &out, Measurement &m) {
  std::vector<Deviation> deviations(out.size());
  c.judge(in, out, deviations);
  for (size_t i = 0; i < out.size(); ++i) {
    const Deviation &d = deviations[i];
    m.maxOfBound = std::max(m.maxOfBound, d.ofBound);
    m.maxUlp = std::max(m.maxUlp, d.ulp);
    m.maxAbsolute = std::max(m.maxAbsolute, d.absolute);
    if (d.ofBound <= 1)
      continue;
    ++m.wrong;
    if (m.examples.size() < kExamples)
      m.examples.push_back(
          fmt::format("{}, {}", describe(c, round, i, in, out),
                      d.ofBound > 1e300 ? "wrong in kind" : fmt::format("{:.3g} of what is allowed", d.ofBound)));
  }
}

const char *textOf(KernelText kernels) {
  switch (kernels) {
  case KernelText::Any:
    return kConformanceText;
  case KernelText::Sm90a:
    return kConformanceSm90aText;
  case KernelText::Bytes:
    return kConformanceBytesText;
  }
  return nullptr;
}

KernelJob jobOf(const ConformanceCase &c, unsigned round) {
  return {c.kernels,     textOf(c.kernels), c.symbol, c.grid,    c.threads,
          c.sharedBytes, c.inMap,           c.outMap, c.cluster, static_cast<int>(round % 3)};
}

/// One round of a case on every device.
void runRound(const std::vector<KernelRunner *> &runners, const ConformanceCase &c, uint64_t seed, unsigned round,
              CaseReport &report, ModelStudy *study) {
  const WordList in = conformanceInput(c, seed, round);
  WordList right(c.exact() ? c.outWords : 0);
  if (c.exact())
    c.expect(in, right);
  WordList first;
  for (size_t d = 0; d < runners.size(); ++d) {
    Measurement &m = report.devices[d];
    m.skipped = !runners[d]->canRun(c.kernels);
    if (m.skipped)
      continue;
    WordList out(c.outWords, kUnwritten);
    m.failure = m.failure.empty() ? runners[d]->run(jobOf(c, round), in, out) : m.failure;
    if (!m.failure.empty())
      continue;
    m.values += out.size();
    Hash hash{m.hash};
    for (uint32_t word : out)
      hash.add(word);
    m.hash = hash.value;
    if (c.exact())
      judgeExact(c, round, in, out, right, m);
    else
      judgeBounded(c, round, in, out, m);
    if (first.empty()) {
      if (study && d == 0)
        study->add(c, in, out);
      first = std::move(out);
    } else {
      for (size_t i = 0; i < out.size(); ++i)
        report.different += out[i] != first[i];
    }
  }
}

} // namespace

device::TensorMapDescription describeMap(const MapShape &shape, const void *words) {
  device::TensorMapDescription d = {};
  d.base = static_cast<const char *>(words) + 4 * shape.offsetWords;
  d.rank = static_cast<unsigned char>(shape.sizes.size());
  d.element_bytes = 2;
  d.swizzle = static_cast<device::BoxSwizzle>(shape.swizzle);
  d.mark = device::kMapMark;
  uint64_t stride = d.element_bytes;
  for (size_t n = 0; n < shape.sizes.size(); ++n) {
    d.sizes[n] = static_cast<unsigned>(shape.sizes[n]);
    d.box[n] = static_cast<unsigned short>(shape.box[n]);
    d.strides[n] = stride;
    stride *= d.sizes[n];
  }
  return d;
}

bool CaseReport::passed() const {
  return std::all_of(
             devices.begin(), devices.end(),
             [](const Measurement &m) { return m.skipped || (m.failure.empty() && m.wrong == 0 && m.values > 0); }) &&
         (!testCase->exact() || different == 0);
}

bool ConformanceReport::passed() const {
  return std::all_of(cases.begin(), cases.end(), [](const CaseReport &c) { return c.passed(); });
}

ConformanceReport runConformance(const std::vector<KernelRunner *> &runners, const ConformanceOptions &options,
                                 const std::function<void(size_t, size_t, const std::string &)> &progress) {
  ConformanceReport report;
  report.seed = options.seed;
  report.rounds = options.rounds;
  for (const KernelRunner *runner : runners)
    report.devices.push_back(runner->name());
  const std::vector<const ConformanceCase *> cases = conformanceCases(options.pattern);
  for (const ConformanceCase *c : cases) {
    progress(report.cases.size(), cases.size(), c->name);
    CaseReport result;
    result.testCase = c;
    result.devices.resize(runners.size());
    for (Measurement &m : result.devices)
      m.hash = Hash().value;
    ModelStudy study(c->name);
    const bool studied = options.study && c->dot;
    for (unsigned round = 0; round < options.rounds; ++round)
      runRound(runners, *c, options.seed, round, result, studied ? &study : nullptr);
    if (studied && result.devices[0].values)
      report.models.push_back(study.report());
    report.cases.push_back(std::move(result));
  }
  progress(cases.size(), cases.size(), "");
  return report;
}

} // namespace fagen::lab

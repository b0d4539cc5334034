// fagen: attention with a form in f32, by functions that a test may make wrong.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ModelKernel.h"

#include <cmath>
#include <gtest/gtest.h>

namespace fagen {

using namespace lab;

Case caseOfForm(const std::string &form, const std::string &text, uint64_t seed) {
  std::string report;
  const std::optional<form::Form> checked = formOfText(form, report);
  EXPECT_TRUE(checked.has_value()) << report;
  return checked ? withForm(parseCase(text), definitionOf(*checked), seed) : Case();
}

ModelKernel ModelKernel::of(const FormPtr &form, const Case &c) {
  const auto bound = std::make_shared<BoundForm>(FormProgram(form->texts).bind(c.shape, c.arguments->arguments));
  return {[=](const FormElement &e) { return float(bound->score(e)); },
          [=](const FormElement &e) { return bound->mask(e); },
          [=](const FormElement &e) -> std::optional<float> {
            const std::optional<double> sink = bound->sink(e);
            return sink ? std::optional(float(*sink)) : std::nullopt;
          }};
}

/// One row: O in f32 and LSE.
static float computeRow(const ModelKernel &kernel, const Case &c, const DenseInputs &inputs, FormElement at,
                        std::vector<float> &o) {
  const Shape &s = c.shape;
  const int64_t row = (at.batch * s.heads + at.head) * s.seqQ + at.query;
  const int64_t first = (at.batch * s.kvHeads + at.head / (s.heads / s.kvHeads)) * s.seqKv;
  const auto value = [&](const std::vector<uint16_t> &tensor, int64_t i) {
    return floatOfHalf(c.dtype, tensor[size_t(i)]);
  };
  std::vector<float> exponents(size_t(s.seqKv), -INFINITY);
  const std::optional<float> sink = kernel.sink(at);
  float most = kernel.sinkJoinsLast ? -INFINITY : sink.value_or(-INFINITY);
  for (at.key = 0; at.key < s.seqKv; ++at.key) {
    float dot = 0;
    for (int64_t i = 0; i < s.headDimQK; ++i)
      dot += value(inputs.q, row * s.headDimQK + i) * value(inputs.k, (first + at.key) * s.headDimQK + i);
    at.score = double(dot * float(c.scaleValue()));
    if (kernel.mask(at))
      exponents[size_t(at.key)] = kernel.score(at);
    most = std::max(most, exponents[size_t(at.key)]);
  }
  o.assign(size_t(s.headDimV), 0);
  if (most == -INFINITY)
    return most;
  most = kernel.shift.value_or(most);
  const auto weightOf = [&](float score) {
    const float exponent =
        kernel.multipliesFirst ? std::fma(score, 1.44269504f, -(most * 1.44269504f)) : (score - most) * 1.44269504f;
    const float weight = std::exp2(exponent);
    return weight < kernel.leastWeight ? 0 : weight;
  };
  float sum = sink && !kernel.sinkJoinsLast ? float(kernel.sinks) * weightOf(*sink) : 0;
  for (int64_t k = 0; k < s.seqKv; ++k) {
    const float p = weightOf(exponents[size_t(k)]);
    sum += p;
    for (int64_t i = 0; i < s.headDimV; ++i)
      o[size_t(i)] += floatOfHalf(c.dtype, halfOfFloat(c.dtype, p)) * value(inputs.v, (first + k) * s.headDimV + i);
  }
  if (sink && kernel.sinkJoinsLast) {
    const float ofKeys = std::exchange(most, std::max(most, *sink)), factor = weightOf(ofKeys);
    for (float &column : o)
      column *= factor;
    sum = sum * factor + float(kernel.sinks) * weightOf(*sink);
  }
  for (float &column : o)
    column /= sum;
  return most + std::log(sum);
}

std::string ModelKernel::failures(const Case &c, Arithmetic arithmetic) const {
  const Shape &s = c.shape;
  const DenseInputs inputs = makeInputs(c, 1);
  std::vector<uint16_t> o;
  std::vector<uint32_t> lse;
  std::vector<float> row;
  for (int64_t i = 0; i < s.rows(); ++i) {
    const FormElement at{0, i / s.seqQ / s.heads, i / s.seqQ % s.heads, i % s.seqQ, 0};
    lse.push_back(bitsOfFloat(computeRow(*this, c, inputs, at, row) * lseFactor));
    for (float column : row)
      o.push_back(halfOfFloat(c.dtype, column * oFactor));
  }
  std::string broken;
  for (const Failure &failure : judge(c, CpuReference().compute(c, inputs), arithmetic, o, &lse).failures)
    if (broken.find(failure.criterion) == std::string::npos)
      broken += (broken.empty() ? "" : " ") + failure.criterion;
  return broken;
}

} // namespace fagen

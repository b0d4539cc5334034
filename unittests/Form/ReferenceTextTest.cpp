// fagen: the GPU's reference, its text run on the CPU with one thread a CTA, against the CPU's reference.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// So what the text computes is known without a GPU; how its threads share the work is not. fagen-run check compares
// both references on the GPU before it checks anything.

#include "FormOfText.h"
#include "RandomForm.h"
#include "lab/device/gpu_reference.h"

#include <gtest/gtest.h>
#include <math.h>

#define __device__
#define __global__
#define __shared__ static
#define __launch_bounds__(threads)
#define __syncthreads()
#define FAGEN_REFERENCE_THREADS 1

namespace onCpu {
namespace fagen::lab {
using namespace ::fagen::lab;
}
struct Index {
  int x; // signed, as comparisons here want it
};
static Index blockIdx, threadIdx;
#include "lab/kernels/reference.cu"

#include "lab/kernels/form_reference.cu"
} // namespace onCpu

using namespace fagen;

namespace {

/// As GpuReference has it from a GPU.
lab::Reference runText(const lab::Case &c, const lab::DenseInputs &inputs) {
  lab::Reference reference = lab::emptyReference(c);
  const lab::Shape &s = c.shape;
  std::vector<double> moved(s.rows() * lab::kMoves);
  onCpu::fagen::lab::ReferenceParams params{};
  params.q = inputs.q.data();
  params.k = inputs.k.data();
  params.v = inputs.v.data();
  params.o = reference.o.data();
  params.lse = reference.lse.data();
  params.lseLoss = reference.lseLoss.data();
  params.plain = reference.plain.data();
  params.heads = s.heads;
  params.kvHeads = s.kvHeads;
  params.seqQ = s.seqQ;
  params.seqKv = s.seqKv;
  params.headDimQK = int(s.headDimQK);
  params.headDimV = int(s.headDimV);
  params.causal = c.mask == lab::Mask::Causal;
  params.dtype = c.dtype;
  params.scale = c.scaleValue();
  params.rounding = reference.form.rounding.data();
  params.tanh = reference.form.tanh.data();
  params.moved = moved.data();
  params.undecided = reference.form.undecided.data();
  const bool hasForm = !c.form.empty();
  std::optional<lab::BoundForm> form;
  if (hasForm) {
    form = lab::FormProgram(c.arguments->form->texts).bind(s, c.arguments->arguments);
    params.form = form->programs().view;
  }
  for (int &row = onCpu::blockIdx.x = 0; row != s.rows(); ++row) {
    hasForm ? onCpu::fagen::lab::formF64(params) : onCpu::fagen::lab::referenceF64(params);
    hasForm ? onCpu::fagen::lab::formPlain(params) : onCpu::fagen::lab::referencePlain(params);
    hasForm ? onCpu::fagen::lab::formLoss(params) : onCpu::fagen::lab::referenceLoss(params);
  }
  for (size_t i = 0; i < moved.size() && hasForm; ++i)
    reference.form.o[i % lab::kMoves] = std::max(reference.form.o[i % lab::kMoves], moved[i]);
  summarize(reference, c.dtype);
  return reference;
}

lab::GpuReference::Agreement compare(const lab::Case &c) {
  const lab::DenseInputs inputs = lab::makeInputs(c, 1);
  return lab::GpuReference::compare(runText(c, inputs), lab::CpuReference().compute(c, inputs));
}

lab::Case caseOf(const std::string &text, const std::string &shape) {
  std::string report;
  const std::optional<form::Form> form = formOfText(text, report);
  EXPECT_TRUE(form.has_value()) << report;
  return lab::withForm(lab::parseCase(shape), definitionOf(*form), 1);
}

TEST(ReferenceText, CausalAttention) {
  EXPECT_TRUE(compare(lab::parseCase("2,4,2,21,45,32 mask=causal")).holds());
  EXPECT_TRUE(compare(lab::parseCase("1,2,1,40,17,32,16 dtype=bf16 mask=causal inputs=large")).holds());
}

/// Lets, tensors, sinks, masks that hide all keys of a row, comparisons that rounding decides, weights that underflow.
TEST(ReferenceText, Forms) {
  const char *const kForms[] = {
      "form f { param cap: f32 in [1, 55]; param window: i32 in [1, 64]; score = cap * tanh(s / cap); "
      "mask = k <= p && p - k < window; }",
      "form f { param slope: f32[heads]; param sinks: f32[heads]; score = s + slope[h] * f32(k - p); mask = k <= p; "
      "sink = sinks[h]; }",
      "form f { param bias: bf16[batch, heads, seq_q, seq_kv]; param doc: i32[batch, seq_kv] ascending; "
      "let own = doc[b, p]; score = s + bias[b, h, q, k]; mask = doc[b, k] == own && own > 0; }",
      "form f { param t: f32 in [0, 1]; score = s > t ? s : -inf; }",
      "form f { mask = k <= p; sink = 90.0; }",
      "form f { param sinks: f32[heads]; mask = q < 0 && k == q; sink = h == 1 ? -inf : sinks[h]; }",
  };
  for (const char *text : kForms)
    for (const char *shape : {"2,4,2,21,45,32", "1,4,1,33,9,16,32 dtype=bf16", "2,2,2,7,0,16"}) {
      const lab::GpuReference::Agreement agreement = compare(caseOf(text, shape));
      EXPECT_TRUE(agreement.holds()) << text << " " << shape << ": O " << agreement.o << ", LSE " << agreement.lse
                                     << ", loss " << agreement.lseLoss << ", errors " << agreement.formErrors << ", "
                                     << agreement.otherUndecided << " rows, plain " << agreement.plainGpu << " "
                                     << agreement.plainCpu;
    }
}

TEST(ReferenceText, RandomForms) {
  for (uint64_t seed = 1; seed != 101; ++seed) {
    RandomForms random(seed);
    const std::string score = random.real(random.draw(0, 5)).text, mask = random.truth(random.draw(0, 5)).text;
    const std::string text = "form f { " + RandomForms::params() + "score = " + score + "; mask = " + mask + "; }";
    const lab::GpuReference::Agreement agreement = compare(caseOf(text, "2,4,2,5,9,16"));
    EXPECT_TRUE(agreement.holds()) << text << ": O " << agreement.o << ", LSE " << agreement.lse << ", errors "
                                   << agreement.formErrors << ", " << agreement.otherUndecided << " rows, plain "
                                   << agreement.plainGpu << " " << agreement.plainCpu;
  }
}

/// What `compare` must not miss.
TEST(ReferenceText, Differences) {
  const lab::Case c = caseOf("form f { param t: f32 in [0.25, 2]; score = s * t; mask = k <= p; }", "1,2,1,9,21,16");
  const lab::DenseInputs inputs = lab::makeInputs(c, 1);
  const lab::Reference right = runText(c, inputs);
  using Change = void (*)(lab::Reference &);
  const Change kChanges[] = {
      [](lab::Reference &r) { r.o[5] += 1e-9; },          [](lab::Reference &r) { r.o[5] = NAN; },
      [](lab::Reference &r) { r.lse[3] += 1e-9; },        [](lab::Reference &r) { r.lse[3] = -INFINITY; },
      [](lab::Reference &r) { r.lseLoss[3] *= 1.001; },   [](lab::Reference &r) { r.form.rounding[2] *= 1.001; },
      [](lab::Reference &r) { r.form.undecided[2] = 1; }, [](lab::Reference &r) { r.form.o[0] *= 1.001; },
      [](lab::Reference &r) { r.maxPlainError *= 3; },    [](lab::Reference &r) { r.form.o[lab::kUnderflow] += 1e-9; },
  };
  EXPECT_TRUE(lab::GpuReference::compare(right, right).holds());
  for (const Change &change : kChanges) {
    lab::Reference wrong = right;
    change(wrong);
    EXPECT_FALSE(lab::GpuReference::compare(wrong, right).holds()) << &change - kChanges;
  }
}

} // namespace

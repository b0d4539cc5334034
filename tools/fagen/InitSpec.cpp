// fagen: a spec to start from: one problem, its schedules with reasons in comments.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "InitSpec.h"

#include "fagen/Lower/Lower.h"
#include "fagen/Parse/Format.h"
#include "fagen/Spec/Analyze.h"
#include "fagen/Spec/Fit.h"

#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>

using namespace llvm;

namespace fagen {

namespace {

/// The sizes that registers and shared memory decide about.
struct Tiles {
  ArrayRef<const char *> prefill; ///< settings of the schedule for many query rows
  ArrayRef<const char *> few;     ///< of the one for few
};

// The fastest first, from the shipped specs of these GPUs; each fits where the one before does not.
constexpr const char *kWgmmaPrefill[] = {
    "tile = 128 x 128; warps = 8; stages = 2;",
    "tile = 128 x 112; warps = 8; stages = 2;",
    "tile = 128 x 64; warps = 8; stages = 2;",
};
constexpr const char *kWgmmaFew[] = {
    "tile = 64 x 128; warps = 4; stages = 2;",
    "tile = 64 x 112; warps = 4; stages = 2;",
    "tile = 64 x 64; warps = 4; stages = 2;",
};
constexpr const char *kMmaSyncPrefill[] = {
    "tile = 128 x 64; warps = 4; stages = 2; refill = late; q_in = registers;",
    "tile = 128 x 64; warps = 4; stages = 2; refill = late;",
    "tile = 128 x 48; warps = 4; stages = 2; refill = late;",
    "tile = 128 x 64; warps = 8; stages = 2; refill = late;",
    "tile = 128 x 48; warps = 8; stages = 2; refill = late;",
    "tile = 128 x 32; warps = 8; stages = 2; refill = late;",
    "tile = 64 x 48; warps = 4; stages = 1; refill = split;",
    "tile = 128 x 32; warps = 8; stages = 1; refill = split;",
    "tile = 64 x 32; warps = 4; stages = 1; refill = split;",
};
constexpr const char *kMmaSyncFew[] = {
    "tile = 16 x 64; warps = 4; stages = 2;",
    "tile = 16 x 64; warps = 4; stages = 1;",
};
constexpr Tiles kWgmma = {kWgmmaPrefill, kWgmmaFew}, kMmaSync = {kMmaSyncPrefill, kMmaSyncFew};

} // namespace

static constexpr const char kHead[] =
    R"(// {gpu} ({target}): {dtype} forward attention. Written by fagen init; docs/Options.md lists all keys.
//   fagen check THIS.fa           finds mistakes and proves the barriers
//   fagen THIS.fa -o generated    writes the kernels
target {target};

kernel {kernel} {{
  problem {{              // what is computed
    dtype = {dtype};      // of Q, K, V and O
    head_dim = {dim};
    mask = {mask};        // a variant each
    lse = on;             // may also write the log-sum-exp
  }}
)";

static constexpr const char kWgmmaSchedules[] = R"(
  schedule prefill {{     // many query rows
    {prefill}
    mma = wgmma;          // a warp group of four warps multiplies 64 query rows
    copy = tma;           // one thread copies whole tiles of K and V
    roles = specialized;  // a warp of its own copies, the others compute
    overlap = intra;      // the softmax of a tile runs under the products of the next
    rescale = optimistic;
    {order}
  }}

  schedule few {{         // too few query rows to fill the GPU: small tiles, all at once
    {few}
    mma = wgmma;
    copy = tma;
    roles = specialized;
    overlap = intra;
    rescale = optimistic;
  }}

  select {{               // read at run time, top to bottom
    when batch * heads * ceil_div(seq_q, 64) <= sms : few;
    otherwise : prefill;
  }}
)";

static constexpr const char kMmaSyncSchedules[] = R"(
  schedule prefill {{     // many query rows
    {prefill}
    mma = mma_sync;       // tensor cores, a warp at a time
    copy = cp_async;      // global to shared memory, while others compute
    rescale = lazy;       // O is rescaled only when the maximum has grown much
  }}

  schedule few {{         // decoding, short queries: the warps share the keys
    {few}
    mma = mma_sync;
    copy = cp_async;
  }}

  select {{               // read at run time, top to bottom
    when seq_q <= 32 : few;
    otherwise : prefill;
  }}
)";

static constexpr const char kTail[] = R"(
  require {{              // gates: fagen SPEC -o DIR --check-resources, fagen-run gate
    spills == 0;
    error <= {error};     // max |O - reference| on normal inputs
  }}
}}
)";

static bool usesWgmma(const InitProblem &problem) {
  return problem.target->has(Feature::Wgmma) && problem.headDim % 32 == 0 && problem.headDimV % 32 == 0;
}

/// How CTAs take tiles: fixed turns where all tiles cost the same.
static StringRef orderOf(const InitProblem &problem) {
  if (problem.mask == "none")
    return "grid = persistent;    // a CTA an SM takes tile after tile";
  if (problem.mask == "causal")
    return "grid = longest_first; // a CTA an SM takes tile after tile, the longest first";
  return "grid = persistent;    // a CTA an SM takes tile after tile\n    when mask == causal { grid = longest_first; "
         "}";
}

static std::string textOf(const InitProblem &problem, const char *prefill, const char *few) {
  const std::string dim = problem.headDim == problem.headDimV
                              ? std::to_string(problem.headDim)
                              : fmt::format("{} : {}", problem.headDim, problem.headDimV);
  std::string text = fmt::format(kHead, fmt::arg("gpu", problem.gpu), fmt::arg("target", problem.target->name.str()),
                                 fmt::arg("dtype", problem.dtype), fmt::arg("kernel", problem.kernel),
                                 fmt::arg("dim", dim), fmt::arg("mask", problem.mask));
  text += fmt::format(fmt::runtime(usesWgmma(problem) ? kWgmmaSchedules : kMmaSyncSchedules),
                      fmt::arg("prefill", prefill), fmt::arg("few", few), fmt::arg("order", orderOf(problem).str()));
  return text + fmt::format(kTail, fmt::arg("error", problem.dtype == "bf16" ? "0.016" : "0.002"));
}

/// The text laid out, if the checks of specs accept it, which lower it as far as shared memory and registers are known,
/// and nothing will spill.
static std::optional<std::string> accepted(StringRef text) {
  SourceMgr sources;
  const unsigned id = sources.AddNewSourceBuffer(MemoryBuffer::getMemBufferCopy(text, "init.fa"), SMLoc());
  Diagnostics silent(sources, nulls());
  Lowering lowering;
  const std::optional<SpecFile> file = analyzeSpec(sources, id, silent, {{}, &lowering});
  if (!file)
    return std::nullopt;
  for (const Variant &variant : file->kernels.front().variants)
    if (!registersOf(variant).areEnough())
      return std::nullopt;
  return formatSpec(sources.getMemoryBuffer(id)->getBuffer(), silent);
}

std::optional<std::string> initSpec(const InitProblem &problem) {
  const Tiles &known = usesWgmma(problem) ? kWgmma : kMmaSync;
  for (const char *prefill : known.prefill)
    for (const char *few : known.few)
      if (std::optional<std::string> text = accepted(textOf(problem, prefill, few)))
        return text;
  return std::nullopt;
}

} // namespace fagen

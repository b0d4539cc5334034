// fagen: a spec to start from: one problem, its schedules with reasons in comments.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "InitSpec.h"

#include "fagen/Lower/Lower.h"
#include "fagen/Parse/Format.h"
#include "fagen/Spec/Analyze.h"

#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>

using namespace llvm;

namespace fagen {

namespace {

/// The sizes that shared memory decides about.
struct Tiles {
  const char *prefill; ///< settings of the schedule for many query rows
  const char *few;     ///< of the one for few
};

// The fastest first, from the shipped specs of these GPUs; each fits where the one before does not.
constexpr Tiles kWgmma[] = {
    {"tile = 128 x 128; warps = 8; stages = 2;", "tile = 64 x 128; warps = 4; stages = 2;"},
    {"tile = 128 x 112; warps = 8; stages = 2;", "tile = 64 x 112; warps = 4; stages = 2;"},
    {"tile = 128 x 64; warps = 8; stages = 2;", "tile = 64 x 64; warps = 4; stages = 2;"},
};
constexpr Tiles kMmaSync[] = {
    {"tile = 128 x 64; warps = 4; stages = 2; refill = late; q_in = registers;",
     "tile = 16 x 64; warps = 4; stages = 2;"},
    {"tile = 128 x 64; warps = 8; stages = 2; refill = late;", "tile = 16 x 64; warps = 4; stages = 2;"},
    {"tile = 128 x 32; warps = 8; stages = 1; refill = split;", "tile = 16 x 64; warps = 4; stages = 2;"},
    {"tile = 128 x 32; warps = 8; stages = 1; refill = split;", "tile = 16 x 64; warps = 4; stages = 1;"},
    {"tile = 64 x 32; warps = 4; stages = 1; refill = split;", "tile = 16 x 32; warps = 4; stages = 1;"},
};

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
    grid = persistent;    // a CTA an SM takes tile after tile
    when mask == causal {{ grid = longest_first; }}
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

static std::string textOf(const InitProblem &problem, const Tiles &tiles) {
  const std::string dim = problem.headDim == problem.headDimV
                              ? std::to_string(problem.headDim)
                              : fmt::format("{} : {}", problem.headDim, problem.headDimV);
  std::string text = fmt::format(kHead, fmt::arg("gpu", problem.gpu), fmt::arg("target", problem.target->name.str()),
                                 fmt::arg("dtype", problem.dtype), fmt::arg("kernel", problem.kernel),
                                 fmt::arg("dim", dim), fmt::arg("mask", problem.mask));
  text += fmt::format(fmt::runtime(usesWgmma(problem) ? kWgmmaSchedules : kMmaSyncSchedules),
                      fmt::arg("prefill", tiles.prefill), fmt::arg("few", tiles.few));
  return text + fmt::format(kTail, fmt::arg("error", problem.dtype == "bf16" ? "0.016" : "0.002"));
}

/// The text laid out, if the checks of specs accept it, which lower it as far as shared memory is known.
static std::optional<std::string> accepted(StringRef text) {
  SourceMgr sources;
  const unsigned id = sources.AddNewSourceBuffer(MemoryBuffer::getMemBufferCopy(text, "init.fa"), SMLoc());
  Diagnostics silent(sources, nulls());
  Lowering lowering;
  if (!analyzeSpec(sources, id, silent, {{}, &lowering}))
    return std::nullopt;
  return formatSpec(sources.getMemoryBuffer(id)->getBuffer(), silent);
}

std::optional<std::string> initSpec(const InitProblem &problem) {
  const ArrayRef<Tiles> known = usesWgmma(problem) ? ArrayRef<Tiles>(kWgmma) : ArrayRef<Tiles>(kMmaSync);
  for (const Tiles &tiles : known)
    if (std::optional<std::string> text = accepted(textOf(problem, tiles)))
      return text;
  return std::nullopt;
}

} // namespace fagen

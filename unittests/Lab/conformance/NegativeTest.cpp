// fagen: a function that is wrong is noticed, whichever it is.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ModelRunner.h"

using namespace fagen::lab;

namespace {

/// The emulator with one piece of the kernels' text replaced: as if the function there did something else.
class BrokenRunner : public KernelRunner {
public:
  BrokenRunner(std::string from, std::string to) : from(std::move(from)), to(std::move(to)) {}

  std::string name() const override { return "broken emulator"; }

  std::string run(const KernelJob &job, const WordList &in, WordList &out) override {
    KernelJob broken = job;
    size_t place = broken.text.find(from);
    if (place == std::string::npos)
      return "'" + from + "' is not in the kernels";
    for (; place != std::string::npos; place = broken.text.find(from, place + to.size()))
      broken.text.replace(place, from.size(), to);
    return emulator->run(broken, in, out);
  }

private:
  std::unique_ptr<KernelRunner> emulator = makeEmulatorRunner();
  std::string from, to;
};

struct Defect {
  const char *what, *from, *to, *pattern;
  unsigned rounds = 1;
};

/// Each is small: one bit of rounding, one flag, one barrier.
const Defect kDefects[] = {
    {"fma rounds twice", "ptx::fma(as_float(x[0]), as_float(x[1]), as_float(x[2]))",
     "ptx::add(ptx::mul(as_float(x[0]), as_float(x[1])), as_float(x[2]))", "fma"},
    {"subnormals are flushed", "ptx::mul(as_float(x[0]), as_float(x[1]))",
     "ptx::flush_subnormal(ptx::mul(as_float(x[0]), as_float(x[1])))", "mul"},
    {"division by the reciprocal", "ptx::div(as_float(x[0]), as_float(x[1]))",
     "ptx::mul(as_float(x[0]), ptx::div(1.0f, as_float(x[1])))", "div"},
    {"a NaN wins", "ptx::max(as_float(x[0]), as_float(x[1]))",
     "(as_float(x[0]) < as_float(x[1]) ? as_float(x[1]) : as_float(x[0]))", "max"},
    {"f16 is cut, not rounded", "ptx::round_to<f16>(as_float(x[0]))",
     "ptx::round_to<f16>(as_float(x[0] & 0xffffe000u))", "round_to<f16>", 3},
    {"halves of a pair exchanged", "ptx::round_pair<bf16>(as_float(x[0]), as_float(x[1]))",
     "ptx::round_pair<bf16>(as_float(x[1]), as_float(x[0]))", "round_pair<bf16>"},
    {"exp2 off by 3 ulp", "as_word(ptx::exp2(as_float(x[0])))", "as_word(ptx::exp2(as_float(x[0]))) + 3", "exp2"},
    {"a copy that is not valid copies", "(valid >> (stage * 4 + byte / 4) & 1) != 0", "true", "cp_async<16>"},
    {"the mask is another", "ptx::shuffle_xor(as_float(word[0]), mask)",
     "ptx::shuffle_xor(as_float(word[0]), mask ^ (mask == 4))", "shuffle"},
    {"transposed or not", "if constexpr (kTranspose)", "if constexpr (!kTranspose)", "ldmatrix_x4_trans"},
    {"the accumulator is ignored", "function(d, a, b[0], b[1]);",
     "d[0] = d[1] = d[2] = d[3] = 0; function(d, a, b[0], b[1]);", "mma_m16n8k16_f32_f16"},
    {"matrices are stored transposed", "ptx::stmatrix_x4(row, words);", "ptx::stmatrix_x4_trans(row, words);",
     "stmatrix_x4"},
    {"B is always the first slice", "k_major_step<B>(slice)", "k_major_step<B>(0)", "wgmma f16_shared_128"},
    {"the second store is the first one again", "at, data + next);", "at, data);", "tma_store<4> 64"},
    {"a box comes from elsewhere", "coordinates(at, params);", "coordinates(at, params), ++at[1];", "tma_load<3> 128"},
    {"B by columns", "ptx::wmma_mma_f32_f16_row", "ptx::wmma_mma_f32_f16_col", "wmma_mma_f32_f16_row"},
};

TEST(Negative, unbrokenEmulatorPasses) {
  BrokenRunner runner("conformance_fma", "conformance_fma");
  EXPECT_TRUE(runOn(runner, "fma", 1).passed());
}

TEST(Negative, eachDefectIsNoticed) {
  for (const Defect &defect : kDefects) {
    BrokenRunner runner(defect.from, defect.to);
    const ConformanceReport report = runOn(runner, defect.pattern, defect.rounds);
    bool noticed = false;
    for (const CaseReport &c : report.cases) {
      ASSERT_EQ(c.devices[0].failure, "") << defect.what;
      noticed |= c.devices[0].wrong > 0;
    }
    EXPECT_TRUE(noticed) << defect.what;
    EXPECT_FALSE(report.passed()) << defect.what;
  }
}

/// The emulator itself names a missing wait or barrier.
TEST(Negative, missingWaitsAndBarriersAreNoticed) {
  const Defect defects[] = {{"no wait", "ptx::cp_async_wait<kPending>();", "", "cp_async<16>", 3},
                            {"no barrier", "kWarp ? ptx::warp_barrier() : ptx::cta_barrier();", "", "cta_barrier", 3}};
  for (const Defect &defect : defects) {
    BrokenRunner runner(defect.from, defect.to);
    EXPECT_FALSE(runOn(runner, defect.pattern, defect.rounds).passed()) << defect.what;
  }
}

/// Two devices that agree with the definition within the bound, and differ: counted, and no failure.
TEST(Negative, differencesWithinABoundAreCounted) {
  ModelRunner tensorCore{Accumulation{}}, ideal{Accumulation{.ideal = true}};
  ConformanceOptions options;
  options.pattern = "mma_m16n8k16_f32_bf16";
  options.rounds = 1;
  const ConformanceReport report =
      runConformance({&tensorCore, &ideal}, options, [](size_t, size_t, const std::string &) {});
  EXPECT_TRUE(report.passed());
  EXPECT_GT(report.cases[0].different, 1000u);
}

} // namespace

// fagen: the check loop on a device that computes right, or wrong in one chosen way.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "FakeSet.h"
#include "report.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

using namespace fagen::lab;

namespace {

enum class Plant { None, WrongElement, Unwritten, Guard, Gap, Lse, Nondeterminism, Input, Launch, Lost };

/// Computes attention on the host from the strides it is told, and then does one thing wrong.
class FakeDevice : public TestDevice {
public:
  explicit FakeDevice(Plant plant = Plant::None) : plant(plant) { fagen_device_describe(89, 1, &described); }
  ~FakeDevice() override { fagen_device_destroy(described); }

  std::string name() const override { return "fake"; }
  fagen_device *queryDevice(const fagen_row &) override { return described; }
  int64_t largestTensor() const override { return int64_t{1} << 20; }
  void *allocate(int64_t bytes) override { return std::aligned_alloc(256, (bytes + 255) / 256 * 256); }
  void release(void *memory) override { std::free(memory); }
  void upload(void *to, const void *from, int64_t bytes) override { std::memcpy(to, from, bytes); }
  void download(void *to, const void *from, int64_t bytes) override { std::memcpy(to, from, bytes); }

  std::vector<Failure> run(const Launch &launch) override {
    ++runs;
    if (plant == Plant::Launch)
      return {{"launch", "planted"}};
    if (plant == Plant::Lost)
      throw DeviceError("planted");
    compute(launch);
    corrupt(launch);
    return {};
  }

  int runs = 0;

private:
  static std::vector<uint16_t> gather(const void *base, const int64_t *stride, int64_t batch, int64_t heads,
                                      int64_t rows, int64_t columns) {
    std::vector<uint16_t> dense;
    for (int64_t i = 0; i < batch * heads * rows; ++i) {
      auto *row = static_cast<const uint16_t *>(base) + (batch > 1 ? i / rows / heads * stride[0] : 0) +
                  (heads > 1 ? i / rows % heads * stride[1] : 0) + (rows > 1 ? i % rows * stride[2] : 0);
      dense.insert(dense.end(), row, row + columns);
    }
    return dense;
  }

  void compute(const Launch &launch) {
    const fagen_problem &p = launch.problem;
    Case c;
    c.shape = {p.batch, p.heads, p.kv_heads, p.seq_q, p.seq_kv, p.head_dim_qk, p.head_dim_v};
    c.mask = Mask::Causal;
    if (p.has_scale)
      c.scale = p.scale;
    DenseInputs inputs{gather(launch.tensors.q, p.q_stride, p.batch, p.heads, p.seq_q, p.head_dim_qk),
                       gather(launch.tensors.k, p.k_stride, p.batch, p.kv_heads, p.seq_kv, p.head_dim_qk),
                       gather(launch.tensors.v, p.v_stride, p.batch, p.kv_heads, p.seq_kv, p.head_dim_v)};
    Reference reference = CpuReference().compute(c, inputs);
    for (int64_t i = 0; i < c.shape.rows(); ++i) {
      int64_t row = i % p.seq_q, head = i / p.seq_q % p.heads, batch = i / p.seq_q / p.heads;
      int64_t offset = (p.batch > 1 ? batch * p.o_stride[0] : 0) + (p.heads > 1 ? head * p.o_stride[1] : 0) +
                       (p.seq_q > 1 ? row * p.o_stride[2] : 0);
      std::memcpy(static_cast<uint16_t *>(launch.tensors.o) + offset, &reference.plain[i * p.head_dim_v],
                  p.head_dim_v * 2);
      if (launch.tensors.lse)
        launch.tensors
            .lse[(p.batch > 1 ? batch * p.lse_stride[0] : 0) + (p.heads > 1 ? head * p.lse_stride[1] : 0) + row] =
            static_cast<float>(reference.lse[i]);
    }
  }

  void corrupt(const Launch &launch) {
    auto *o = static_cast<uint16_t *>(launch.tensors.o);
    switch (plant) {
    case Plant::WrongElement:
      o[5] = f16OfFloat(3);
      break;
    case Plant::Unwritten:
      o[5] = kPoison16;
      break;
    case Plant::Guard:
      o[-1] = 0;
      break;
    case Plant::Gap:
      o[launch.problem.head_dim_v] = 0;
      break;
    case Plant::Lse:
      launch.tensors.lse[1] += 1;
      break;
    case Plant::Nondeterminism:
      o[5] = static_cast<uint16_t>(o[5] ^ (launch.attempt == 2));
      break;
    case Plant::Input:
      const_cast<uint16_t *>(static_cast<const uint16_t *>(launch.tensors.k))[3] = 0x1234;
      break;
    default:
      break;
    }
  }

  Plant plant;
  fagen_device *described = nullptr;
};

/// Checks the fake set on one case; the criteria that failed, each once, in the order of the results.
struct Outcome {
  std::vector<std::unique_ptr<KernelSet>> sets; // the report points into them
  CheckReport report;
  std::vector<std::string> criteria;
  int runs = 0;
};
Outcome check(FakeSet &fake, Plant plant, const std::string &text) {
  Outcome outcome;
  outcome.sets.push_back(fake.load());
  FakeDevice device(plant);
  CpuReference engine;
  CheckOptions options;
  options.deviceFlag = "cpu";
  if (!text.empty())
    options.cases = {parseCase(text)};
  outcome.report = runCheck(outcome.sets, device, engine, options, [](size_t, size_t, const std::string &) {});
  outcome.runs = device.runs;
  auto note = [&](const std::vector<Failure> &failures) {
    for (const Failure &failure : failures)
      if (std::find(outcome.criteria.begin(), outcome.criteria.end(), failure.criterion) == outcome.criteria.end())
        outcome.criteria.push_back(failure.criterion);
  };
  note(outcome.report.failures);
  for (const CaseResult &result : outcome.report.results)
    note(result.measured.failures);
  EXPECT_EQ(outcome.report.passed(), outcome.criteria.empty()) << checkFailures(outcome.report, options);
  return outcome;
}

constexpr const char *kPlain = "1,2,1,9,12,16 mask=causal";
using Names = std::vector<std::string>;

TEST(Check, rightResultsPassTheSmokeSuite) {
  FakeSet fake;
  Outcome outcome = check(fake, Plant::None, "");
  EXPECT_EQ(outcome.criteria, Names{}) << checkFailures(outcome.report, CheckOptions());
  EXPECT_GT(outcome.report.results.size(), 20u);
  EXPECT_EQ(outcome.runs, static_cast<int>(outcome.report.results.size()) * 3);
  EXPECT_EQ(outcome.report.skipped, 1); // the aligned row on layout=odd
}

TEST(Check, everyLayoutPasses) {
  FakeSet fake;
  for (const char *layout : {"bhsd", "bshd", "padded", "odd", "offset", "junk"})
    EXPECT_EQ(check(fake, Plant::None, std::string("2,4,2,9,12,16 mask=causal layout=") + layout).criteria, Names{});
}

TEST(Check, wrongElement) {
  FakeSet fake;
  Outcome outcome = check(fake, Plant::WrongElement, kPlain);
  EXPECT_EQ(outcome.criteria.at(0), "error");
}
TEST(Check, unwrittenElement) {
  FakeSet fake;
  EXPECT_EQ(check(fake, Plant::Unwritten, kPlain).criteria, Names{"unwritten"});
}
TEST(Check, guardBeforeTheTensor) {
  FakeSet fake;
  EXPECT_EQ(check(fake, Plant::Guard, kPlain).criteria, Names{"guard"});
}
TEST(Check, gapBetweenRows) {
  FakeSet fake;
  EXPECT_EQ(check(fake, Plant::Gap, std::string(kPlain) + " layout=padded").criteria, Names{"guard"});
}
TEST(Check, lseOff) {
  FakeSet fake;
  EXPECT_EQ(check(fake, Plant::Lse, kPlain).criteria, Names{"lse"});
}
TEST(Check, thirdRunDiffers) {
  FakeSet fake;
  EXPECT_EQ(check(fake, Plant::Nondeterminism, kPlain).criteria, Names{"determinism"});
}
TEST(Check, inputChanged) {
  FakeSet fake;
  Names criteria = check(fake, Plant::Input, kPlain).criteria;
  EXPECT_NE(std::find(criteria.begin(), criteria.end(), "input"), criteria.end());
}
TEST(Check, failedLaunch) {
  FakeSet fake;
  EXPECT_EQ(check(fake, Plant::Launch, kPlain).criteria, Names{"launch"});
}
TEST(Check, lostDeviceEndsTheCheck) {
  FakeSet fake;
  Outcome outcome = check(fake, Plant::Lost, kPlain);
  EXPECT_EQ(outcome.criteria, Names{"device"});
  EXPECT_EQ(outcome.runs, 1);
}

TEST(Check, caseThatNoRowFits) {
  FakeSet fake;
  fake.manifest["rows"].erase(1); // no fallback for odd strides
  EXPECT_EQ(check(fake, Plant::None, std::string(kPlain) + " layout=odd").criteria, Names{"fit"});
}

TEST(Check, caseTooLargeForTheDevice) {
  FakeSet fake;
  Outcome outcome = check(fake, Plant::None, "");
  EXPECT_TRUE(outcome.report.tooLarge.empty());
  std::vector<std::unique_ptr<KernelSet>> sets;
  sets.push_back(fake.load());
  FakeDevice device;
  CpuReference engine;
  CheckOptions options;
  options.cases = {parseCase("2,2,1,9,12,16 mask=causal layout=far"), parseCase(kPlain)};
  CheckReport report = runCheck(sets, device, engine, options, [](size_t, size_t, const std::string &) {});
  EXPECT_EQ(report.tooLarge, Names{"2,2,1,9,12,16 mask=causal layout=far"});
  EXPECT_EQ(report.results.size(), 2u);
  EXPECT_TRUE(report.passed());
}

TEST(Check, caseOfAnotherProblem) {
  FakeSet fake;
  EXPECT_THROW(check(fake, Plant::None, "1,2,1,9,12,32 mask=causal"), UserError);
}

TEST(Check, reproLineNamesTheCase) {
  FakeSet fake;
  Outcome outcome = check(fake, Plant::Lse, std::string(kPlain) + " scale=0.5");
  CheckOptions options;
  options.deviceFlag = "cpu";
  std::string line = reproLine(outcome.report.results[0], options);
  EXPECT_NE(line.find("--variant fake_f16_d16_causal --case \"1,2,1,9,12,16 mask=causal scale=0.5\" --seed 1"),
            std::string::npos)
      << line;
}

} // namespace

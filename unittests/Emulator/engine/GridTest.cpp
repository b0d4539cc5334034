// fagen: many CTAs, on any number of workers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../Kernels.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace fagen::emulator::gridTest {
namespace {

const std::string kFile = "grid.cu";

TEST(Grid, ThousandCtasOnAnyNumberOfWorkers) {
  constexpr unsigned kCtas = 1000;
  std::vector<unsigned> in(128 * kCtas);
  for (unsigned i = 0; i < in.size(); ++i)
    in[i] = i;
  for (const unsigned workers : {0u, 1u, 3u}) {
    std::vector<unsigned> out(in.size());
    const Launch launch = {"reverse",
                           kCtas,
                           128,
                           512,
                           {{in.data(), 4 * in.size(), false, "in"}, {out.data(), 4 * out.size(), true, "out"}},
                           workers};
    const Arguments arguments = {in.data(), out.data(), 0};
    const auto begin = std::chrono::steady_clock::now();
    const Report report = kernels(kFile).launch(launch, &arguments, sizeof(arguments), {});
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    RecordProperty("milliseconds" + std::to_string(workers), std::to_string(1e3 * seconds.count()));
    ASSERT_TRUE(report.ok) << text(report);
    EXPECT_EQ(report.instructions, 5u * 128 * kCtas);
    for (unsigned i = 0; i < out.size(); ++i)
      ASSERT_EQ(out[i], i / 128 * 128 + 127 - i % 128);
  }
}

TEST(Grid, SharedMemoryIsNotHandedOn) {
  std::vector<float> out(1);
  KernelRun run = {.file = kFile, .symbol = "stale", .grid = 8, .threads = 1, .sharedBytes = 16, .count = 7};
  expectOnly(launch(run, std::vector<unsigned>(1), out), "never-written", kFile, "stale");
}

// A workspace: what one launch wrote the next one may read, and nothing else.
TEST(Grid, BytesThatNoLaunchWroteAreNotRead) {
  std::vector<unsigned> in(256), out(256), last(256);
  auto written = std::make_shared<std::vector<unsigned char>>(4 * out.size());
  const Buffer workspace = {out.data(), 4 * out.size(), true, "workspace", {}, 2, written};
  const Buffer input = {in.data(), 4 * in.size(), false, "in"}, output = {last.data(), 4 * last.size(), true, "out"};
  const Arguments write = {in.data(), out.data(), 0}, read = {out.data(), last.data(), 0};
  const Launch first = {"reverse", 1, 128, 512, {input, workspace}}; // 128 of 256 words
  ASSERT_TRUE(kernels(kFile).launch(first, &write, sizeof(write), {}).ok);
  Launch second = {"reverse", 1, 128, 512, {workspace, output}};
  EXPECT_TRUE(kernels(kFile).launch(second, &read, sizeof(read), {}).ok);
  second.grid = 2;
  const Report report = kernels(kFile).launch(second, &read, sizeof(read), {});
  ASSERT_EQ(report.findings.size(), 1u) << text(report);
  EXPECT_EQ(report.findings[0].kind, "never-written");
  EXPECT_NE(report.findings[0].message.find("reads bytes 512 to 515 of workspace, which no launch wrote"),
            std::string::npos)
      << report.findings[0].message;
}

TEST(Grid, ReportDoesNotDependOnTheWorkers) {
  std::vector<unsigned> memory(128 * 16 + 128); // what is read beyond `in` is in no other buffer
  unsigned *out = memory.data(), *in = out + 128 * 16;
  std::string first;
  for (const unsigned workers : {1u, 2u, 4u}) {
    const Launch launch = {"reverse", 16, 128, 512, {{in, 4 * 128, false, "in"}, {out, 4 * 128 * 16, true, "out"}},
                           workers};
    const Arguments arguments = {in, out, 0};
    const Report report = kernels(kFile).launch(launch, &arguments, sizeof(arguments), {});
    EXPECT_EQ(report.findings.size(), 1u);
    first = first.empty() ? text(report) : first;
    EXPECT_EQ(text(report), first);
  }
  EXPECT_NE(first.find("CTA 1 "), std::string::npos) << first;
}

/// Who drew which number, of `ctas` CTAs.
std::vector<unsigned> drawNumbers(unsigned ctas, uint64_t seed) {
  constexpr int kNumbers = 40;
  std::vector<unsigned> out(1 + kNumbers);
  const Launch launch = {"draw", ctas, 32, 0, {{out.data(), 4 * out.size(), true, "out"}}, /*workers=*/ctas};
  const Arguments arguments = {nullptr, out.data(), kNumbers};
  Options options;
  options.seed = seed;
  const Report report = kernels(kFile).launch(launch, &arguments, sizeof(arguments), options);
  EXPECT_TRUE(report.ok) << text(report);
  EXPECT_EQ(out[0], 0u) << "one draw a number and one more a CTA: the counter is back where it was";
  return {out.begin() + 1, out.end()};
}

TEST(Grid, CtasTakeTurnsAtAtomics) {
  std::vector<unsigned> inTurn(40);
  for (unsigned i = 0; i < inTurn.size(); ++i)
    inTurn[i] = i % 4;
  EXPECT_EQ(drawNumbers(4, 0), inTurn);
}

TEST(Grid, TheSeedSaysWhoDrawsFirst) {
  const std::vector<unsigned> once = drawNumbers(3, 1);
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(drawNumbers(3, 1), once);
  EXPECT_NE(drawNumbers(3, 2), once);
  EXPECT_EQ(*std::max_element(once.begin(), once.end()), 2u);
}

TEST(Grid, AtomicsOutsideOfBuffersAreReported) {
  std::vector<unsigned> word(1);
  const Launch launch = {"draw", 1, 32, 0, {{word.data(), 4, false, "out"}}};
  const Arguments arguments = {nullptr, word.data(), 7};
  const Report report = kernels(kFile).launch(launch, &arguments, sizeof(arguments), {});
  ASSERT_EQ(report.findings.size(), 1u) << text(report);
  EXPECT_EQ(report.findings[0].kind, "read-only");
}

TEST(Grid, LaunchesMayRunAtTheSameTime) {
  std::vector<std::thread> threads;
  std::vector<int> good(4);
  Module &module = kernels(kFile);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::vector<unsigned> in(128 * 50, unsigned(t)), out(in.size());
      const Launch launch = {"reverse",
                             50,
                             128,
                             512,
                             {{in.data(), 4 * in.size(), false, "in"}, {out.data(), 4 * out.size(), true, "out"}}};
      const Arguments arguments = {in.data(), out.data(), 0};
      good[t] = module.launch(launch, &arguments, sizeof(arguments), {}).ok && in == out;
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(good, std::vector<int>(4, 1));
}

TEST(Grid, WrongLaunchesAreRefused) {
  const Arguments arguments;
  const auto refusal = [&](const Launch &launch, size_t paramBytes) {
    const Report report = kernels(kFile).launch(launch, &arguments, paramBytes, {});
    EXPECT_FALSE(report.ok);
    return report.findings.at(0).message;
  };
  EXPECT_EQ(refusal({"reverse", 1, 0, 0, {}}, 24), "a CTA has 1 to 1024 threads, not 0");
  EXPECT_EQ(refusal({"reverse", 1, 1025, 0, {}}, 24), "a CTA has 1 to 1024 threads, not 1025");
  EXPECT_EQ(refusal({"nothing", 1, 32, 0, {}}, 24), "there is no kernel 'nothing'");
  EXPECT_EQ(refusal({"reverse", 1, 32, 0, {}}, 5000), "5000 bytes of parameters, at most 4096 are possible");
}

TEST(Grid, EmptyGridDoesNothing) {
  const Arguments arguments;
  EXPECT_TRUE(kernels(kFile).launch({"reverse", 0, 128, 512, {}}, &arguments, sizeof(arguments), {}).ok);
}

} // namespace
} // namespace fagen::emulator::gridTest

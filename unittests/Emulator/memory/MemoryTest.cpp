// fagen: wrong accesses are found, named by line, and do no harm.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../Kernels.h"

#include <cmath>
#include <numeric>

namespace fagen::emulator::memoryTest {
namespace {

const std::string kFile = "memory.cu";

std::vector<unsigned> numbers(size_t count) {
  std::vector<unsigned> values(count);
  std::iota(values.begin(), values.end(), 100u);
  return values;
}

TEST(Memory, GlobalWords) {
  const std::vector<unsigned> in = numbers(32);
  std::vector<unsigned> out(32);
  const Report report = launch({kFile, "copy_words"}, in, out);
  EXPECT_TRUE(report.ok) << text(report);
  EXPECT_EQ(out, in);
  EXPECT_EQ(report.instructions, 64u);
}

TEST(Memory, GlobalReadBeyondTheEndGivesPoison) {
  const std::vector<unsigned> in = numbers(32);
  std::vector<unsigned> out(32);
  const Report report = launch({.file = kFile, .symbol = "copy_words", .count = 2}, in, out);
  expectOnly(report, "out-of-bounds", kFile, "load");
  EXPECT_EQ(report.findings[0].message,
            "thread 30 (warp 0 lane 30) of CTA 0 reads 4 bytes at byte 128 of in, which has "
            "128 bytes (the first of 2 at this place)");
  EXPECT_EQ(out[29], in[31]);
  EXPECT_EQ(out[30], 0xffffffffu);
}

TEST(Memory, GlobalReadBeforeTheBegin) {
  const std::vector<unsigned> in = numbers(32);
  std::vector<unsigned> out(32);
  const Report report = launch({.file = kFile, .symbol = "copy_words", .count = -1}, in, out);
  expectOnly(report, "out-of-bounds", kFile, "load");
  EXPECT_EQ(out[0], 0xffffffffu);
  EXPECT_EQ(out[1], in[0]);
}

TEST(Memory, GlobalWriteBeyondTheEndIsDropped) {
  std::vector<unsigned> memory(40, 5);
  const Launch launch = {"store_beyond", 1, 1, 0, {{memory.data(), 128, true, "out"}}};
  const Arguments arguments = {nullptr, memory.data(), 32};
  const Report report = kernels(kFile).launch(launch, &arguments, sizeof(arguments), {});
  expectOnly(report, "out-of-bounds", kFile, "store_beyond");
  EXPECT_EQ(memory, std::vector<unsigned>(40, 5));
}

TEST(Memory, GlobalWriteAcrossTheEndIsDropped) {
  std::vector<unsigned> memory(40, 5);
  const Launch launch = {"store_beyond", 1, 1, 0, {{memory.data(), 126, true, "out"}}};
  const Arguments arguments = {nullptr, memory.data(), 31};
  expectOnly(kernels(kFile).launch(launch, &arguments, sizeof(arguments), {}), "out-of-bounds", kFile, "store_beyond");
  EXPECT_EQ(memory, std::vector<unsigned>(40, 5));
}

TEST(Memory, WriteToInputIsDropped) {
  const std::vector<unsigned> in = numbers(1);
  std::vector<unsigned> out(1);
  expectOnly(launch({.file = kFile, .symbol = "store_input", .threads = 1}, in, out), "read-only", kFile,
             "store_input");
  EXPECT_EQ(in[0], 100u);
}

TEST(Memory, WhoDrawsFromAnInputEnds) {
  const std::vector<unsigned> in(1);
  std::vector<unsigned> out(1);
  expectOnly(launch({.file = kFile, .symbol = "draw_from_input", .threads = 1, .count = 100}, in, out), "read-only",
             kFile, "draw");
  EXPECT_EQ(in[0], 0u);
}

TEST(Memory, GlobalMisaligned) {
  const std::vector<unsigned> in = numbers(16);
  std::vector<unsigned> out(1);
  const unsigned offset = reinterpret_cast<uintptr_t>(in.data()) % 16;
  KernelRun run = {.file = kFile, .symbol = "load_misaligned", .threads = 1, .count = int(16 - offset)};
  EXPECT_TRUE(launch(run, in, out).ok);
  run.count += 8;
  expectOnly(launch(run, in, out), "misaligned", kFile, "load_misaligned");
}

/// Two rows of 4 words, 6 words apart, between guards of as many; the word at `index` is written, or read.
Report touchRows(const std::string &symbol, int index, std::vector<unsigned> &memory) {
  memory.assign(30, 5);
  std::vector<unsigned char> used(10, 1);
  used[4] = used[5] = 0;
  Buffer rows = {memory.data() + 10, 40, true, "O"};
  rows.used = std::make_shared<std::vector<unsigned char>>(used);
  rows.elementBytes = 4;
  std::vector<unsigned> out(1);
  const Launch launch = {symbol, 1, 1, 0, {rows, {out.data(), 4, true, "out"}}};
  const bool reads = symbol == "copy_words";
  const Arguments arguments = {memory.data() + 10, reads ? out.data() : memory.data() + 10, index};
  return kernels(kFile).launch(launch, &arguments, sizeof(arguments), {});
}

TEST(Memory, GuardsAroundAndBetweenRowsAreNotTouched) {
  std::vector<unsigned> memory;
  for (const std::string symbol : {"store_beyond", "copy_words"})
    for (const int inside : {0, 3, 6, 9})
      EXPECT_TRUE(touchRows(symbol, inside, memory).ok);
  const std::pair<int, const char *> kOutside[] = {{-1, "4 bytes at 4 bytes before O"},
                                                   {4, "4 bytes at byte 16 of O, in a gap between its rows"},
                                                   {5, "4 bytes at byte 20 of O, in a gap between its rows"},
                                                   {10, "4 bytes at byte 40 of O, which has 40 bytes"}};
  for (const auto &[index, where] : kOutside) {
    const Report written = touchRows("store_beyond", index, memory);
    ASSERT_NO_FATAL_FAILURE(expectOnly(written, "out-of-bounds", kFile, "store_beyond"));
    EXPECT_EQ(written.findings[0].message, "thread 0 (warp 0 lane 0) of CTA 0 writes " + std::string(where));
    EXPECT_EQ(written.findings[0].thread, 0);
    EXPECT_EQ(memory, std::vector<unsigned>(30, 5)); // dropped
    const Report read = touchRows("copy_words", index, memory);
    ASSERT_NO_FATAL_FAILURE(expectOnly(read, "out-of-bounds", kFile, "load"));
    EXPECT_EQ(read.findings[0].message, "thread 0 (warp 0 lane 0) of CTA 0 reads " + std::string(where));
  }
}

TEST(Memory, SharedWords) {
  const std::vector<unsigned> in(1);
  std::vector<float> out(32);
  const KernelRun run = {.file = kFile, .symbol = "shared_words", .sharedBytes = 128};
  const Report report = launch(run, in, out);
  EXPECT_TRUE(report.ok) << text(report);
  EXPECT_EQ(out, std::vector<float>(32, 1.0f));
}

TEST(Memory, SharedReadBeyondTheEndGivesPoison) {
  const std::vector<unsigned> in(1);
  std::vector<float> out(32);
  const KernelRun run = {.file = kFile, .symbol = "shared_words", .sharedBytes = 128, .count = 4};
  expectOnly(launch(run, in, out), "out-of-bounds", kFile, "shared_load");
  EXPECT_TRUE(std::isnan(out[31]));
}

TEST(Memory, SharedReadOfWhatNobodyWrote) {
  const std::vector<unsigned> in(1);
  std::vector<float> out(32);
  const KernelRun run = {.file = kFile, .symbol = "shared_words", .sharedBytes = 256, .count = 4};
  const Report report = launch(run, in, out);
  expectOnly(report, "never-written", kFile, "shared_load");
  EXPECT_EQ(report.findings[0].message,
            "thread 31 (warp 0 lane 31) of CTA 0 reads shared bytes 128 to 131, which nobody wrote in this CTA");
  EXPECT_TRUE(std::isnan(out[31]));
  EXPECT_EQ(out[30], 1.0f);
}

TEST(Memory, SharedMisaligned) {
  const std::vector<unsigned> in(1);
  std::vector<float> out(32);
  const KernelRun run = {.file = kFile, .symbol = "shared_words", .sharedBytes = 256, .count = 2};
  expectOnly(launch(run, in, out), "misaligned", kFile, "shared_load");
}

TEST(Memory, SharedWriteBeyondTheEndIsDropped) {
  const std::vector<unsigned> in(1);
  std::vector<float> out(1);
  KernelRun run = {.file = kFile, .symbol = "shared_store_beyond", .threads = 1, .sharedBytes = 16, .count = 8};
  EXPECT_TRUE(launch(run, in, out).ok);
  for (const int beyond : {16, -8}) {
    run.count = beyond;
    expectOnly(launch(run, in, out), "out-of-bounds", kFile, "shared_store_beyond");
  }
}

TEST(Memory, PlaceIsTheCallersWhenPassedOn) {
  const std::vector<unsigned> in(1);
  std::vector<float> out(1);
  const KernelRun run = {.file = kFile, .symbol = "nested", .threads = 1, .sharedBytes = 16};
  expectOnly(launch(run, in, out), "never-written", kFile, "nested");
}

TEST(Memory, UninitialisedIsNoPlausibleValue) {
  const std::vector<unsigned> in(1);
  std::vector<float> out(1, 0.0f);
  EXPECT_TRUE(launch({.file = kFile, .symbol = "uninitialised", .threads = 1}, in, out).ok);
  EXPECT_FALSE(std::abs(out[0]) < 1e30f);
}

TEST(Memory, FindingsAreLimited) {
  // Each with room of its own after, so that what runs beyond one is not in the other.
  std::vector<unsigned> in, out;
  for (std::vector<unsigned> *words : {&in, &out}) {
    words->reserve(1000);
    words->resize(1);
  }
  KernelRun run = {.file = kFile, .symbol = "copy_words", .count = 100};
  const Report both = launch(run, in, out);
  EXPECT_EQ(both.findings.size(), 2u) << text(both);
  run.options.maxFindings = 1;
  const Report one = launch(run, in, out);
  EXPECT_EQ(one.findings.size(), 1u);
  EXPECT_FALSE(one.ok);
}

} // namespace
} // namespace fagen::emulator::memoryTest

// fagen: words that tell of the keys of a run what each of them would.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fagen/emulator/prelude.h>

#include <fagen/device/tile/key_run.h>

#include <gtest/gtest.h>

#include <cstring>
#include <random>

using namespace fagen::device;

namespace {

unsigned notZero(const unsigned char (&bytes)[kRunKeys]) {
  unsigned found = 0;
  for (int i = 0; i < kRunKeys; ++i)
    found |= unsigned(bytes[i] != 0) << i;
  return found;
}

/// Which bytes are 0, and the values at which a carry could go astray.
TEST(KeyRun, BytesThatAreNotZero) {
  for (unsigned zeros = 0; zeros <= kWholeRun; ++zeros)
    for (const unsigned char value : {1, 0x7f, 0x80, 0x81, 0xff}) {
      unsigned char bytes[kRunKeys];
      for (int i = 0; i < kRunKeys; ++i)
        bytes[i] = zeros >> i & 1 ? 0 : value;
      KeyRun<unsigned char> run;
      std::memcpy(run.words, bytes, sizeof(bytes));
      ASSERT_EQ(run.not_zero(), notZero(bytes)) << zeros << " " << int(value);
    }
}

TEST(KeyRun, ElementsAreThoseOfTheBytes) {
  std::mt19937 random(1);
  for (int round = 0; round < 1000; ++round) {
    unsigned char bytes[kRunKeys];
    for (unsigned char &byte : bytes)
      byte = static_cast<unsigned char>(random() >> (random() % 32));
    KeyRun<unsigned char> run;
    std::memcpy(run.words, bytes, sizeof(bytes));
    for (int i = 0; i < kRunKeys; ++i)
      ASSERT_EQ(run[i], int(bytes[i]));
    ASSERT_EQ(run.not_zero(), notZero(bytes));
    ASSERT_EQ(seen_of_run(0, [&](int, int i) { return run[i] != 0; }), notZero(bytes));
  }
}

TEST(KeyRun, FirstKeys) {
  for (int count = -40; count <= 40; ++count)
    EXPECT_EQ(first_keys(count), seen_of_run(100, [&](int key, int) { return key < 100 + count; })) << count;
  EXPECT_EQ(first_keys(-(1 << 30)), 0u);
  EXPECT_EQ(first_keys(1 << 30), kWholeRun);
}

} // namespace

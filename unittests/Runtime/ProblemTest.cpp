// fagen: defaults, rules and refusals of fagen_problem.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "problem.h"
#include "TestTable.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <limits>

using namespace fagen;
using namespace fagen::test;

namespace {

struct Refusal {
  const char *what;
  std::function<void(fagen_problem &)> change;
  fagen_status status;
  const char *text;
};

TEST(Problem, RefusalsSayWhatIsWrong) {
  const Refusal refusals[] = {
      {"batch", [](auto &p) { p.batch = -1; }, FAGEN_INVALID, "batch is -1; it must not be negative"},
      {"seq_kv", [](auto &p) { p.seq_kv = kMaxCount + 1; }, FAGEN_UNSUPPORTED,
       "seq_kv is 1000000001; at most 1000000000 is supported"},
      {"heads", [](auto &p) { p.heads = 6, p.kv_heads = 4; }, FAGEN_INVALID, "kv_heads 4 does not divide heads 6"},
      {"no heads", [](auto &p) { p.heads = 0, p.kv_heads = 4; }, FAGEN_INVALID, "kv_heads is 4 with heads 0"},
      {"head_dim", [](auto &p) { p.head_dim_qk = 0; }, FAGEN_INVALID, "head_dim_qk is 0; it must be given"},
      {"large head_dim", [](auto &p) { p.head_dim_v = 5000; }, FAGEN_UNSUPPORTED,
       "head_dim 64 : 5000; at most 4095 is supported"},
      {"dtype", [](auto &p) { p.dtype = 0; }, FAGEN_INVALID, "dtype 0 is unknown; it is 1 (f16), 2 (bf16) or 3 (e4m3)"},
      {"pass", [](auto &p) { p.pass = 3; }, FAGEN_INVALID, "pass 3 is unknown; it is 1 (forward) or 2 (backward)"},
      {"mask", [](auto &p) { p.mask = 3; }, FAGEN_INVALID, "mask 3 is unknown; it is 1 (none) or 2 (causal)"},
      {"flags", [](auto &p) { p.flags = 10; }, FAGEN_INVALID,
       "flags 0xa has unknown bits; known are FAGEN_FLAG_LSE (0x1), FAGEN_FLAG_PDL (0x2) and FAGEN_FLAG_EXPLICIT "
       "(0x4)"},
      {"no K", [](auto &p) { p.flags = FAGEN_FLAG_EXPLICIT, p.head_dim_v = 64; }, FAGEN_INVALID,
       "kv_heads is 0 with heads 8"},
      {"no V", [](auto &p) { p.flags = FAGEN_FLAG_EXPLICIT, p.kv_heads = 8, p.head_dim_v = 0; }, FAGEN_UNSUPPORTED,
       "head_dim_v is 0: V and O have no columns"},
      {"O in one place", [](auto &p) { p.flags = FAGEN_FLAG_EXPLICIT, p.kv_heads = 8, p.head_dim_v = 64; },
       FAGEN_INVALID, "o_stride[2] is 0: rows would overlap; at least 64 keeps them apart"},
      {"alignment", [](auto &p) { p.alignment = 12; }, FAGEN_INVALID, "alignment 12 is not a power of two"},
      {"scale", [](auto &p) { p.has_scale = 1, p.scale = -0.5f; }, FAGEN_INVALID,
       "scale is -0.5; it must be finite and not negative"},
      {"NaN", [](auto &p) { p.has_scale = 1, p.scale = NAN; }, FAGEN_INVALID,
       "scale is nan; it must be finite and not negative"},
      {"large scale", [](auto &p) { p.has_scale = 1, p.scale = FLT_MAX; }, FAGEN_INVALID,
       "scale is 3.40282e+38; scale * log2(e) must fit a float"},
      {"overlap", [](auto &p) { p.o_stride[1] = 64 * 512, p.o_stride[2] = 32; }, FAGEN_INVALID,
       "o_stride[2] is 32: rows would overlap; at least 64 keeps them apart"},
      {"equal strides", [](auto &p) { p.o_stride[1] = p.o_stride[2] = 64; }, FAGEN_INVALID,
       "o_stride[1] is 64: rows would overlap; at least 32768 keeps them apart"},
      {"rows among heads", [](auto &p) { p.seq_q = 3, p.o_stride[1] = 64, p.o_stride[2] = 64 * 7; }, FAGEN_INVALID,
       "o_stride[2] is 448: rows would overlap; at least 512 keeps them apart"},
      {"batches", [](auto &p) { p.batch = 2, p.o_stride[1] = 64, p.o_stride[2] = 512, p.o_stride[0] = 512 * 511; },
       FAGEN_INVALID, "o_stride[0] is 261632: rows would overlap; at least 262144 keeps them apart"},
      {"lse overlap", [](auto &p) { p.batch = 2, p.lse_stride[0] = 4096; }, FAGEN_INVALID,
       "lse_stride[1] is 0: rows would overlap; at least 1 keeps them apart"},
      {"lse strides of 1", [](auto &p) { p.batch = 2, p.lse_stride[0] = p.lse_stride[1] = 1; }, FAGEN_INVALID,
       "lse_stride[1] is 1: rows would overlap; at least 512 keeps them apart"},
      {"negative stride", [](auto &p) { p.k_stride[2] = -64; }, FAGEN_INVALID,
       "k_stride[2] is -64; it must not be negative"},
      {"overflow", [](auto &p) { p.batch = 3, p.q_stride[0] = int64_t(1) << 62; }, FAGEN_INVALID,
       "the strides of q reach beyond 2^52 bytes"},
      {"2^52 bytes", [](auto &p) { p.batch = 2, p.k_stride[0] = int64_t(1) << 51; }, FAGEN_INVALID,
       "the strides of k reach beyond 2^52 bytes"},
  };
  for (const Refusal &refusal : refusals) {
    fagen_problem given = makeProblem();
    refusal.change(given);
    Problem problem;
    EXPECT_EQ(readProblem(&given, problem), refusal.status) << refusal.what;
    EXPECT_STREQ(fagen_last_error(), refusal.text);
  }
}

TEST(Problem, EverySizeGoesToTheLimit) {
  for (int64_t fagen_problem::*size : {&fagen_problem::batch, &fagen_problem::seq_q, &fagen_problem::seq_kv}) {
    fagen_problem given = makeProblem();
    given.heads = 1;
    given.*size = kMaxCount;
    Problem problem;
    EXPECT_EQ(readProblem(&given, problem), FAGEN_OK) << fagen_last_error();
    given.*size = kMaxCount + 1;
    EXPECT_EQ(readProblem(&given, problem), FAGEN_UNSUPPORTED);
  }
  fagen_problem given = makeProblem();
  given.heads = given.kv_heads = kMaxCount;
  Problem problem;
  EXPECT_EQ(readProblem(&given, problem), FAGEN_OK) << fagen_last_error();
  given.heads = given.kv_heads = kMaxCount + 1;
  EXPECT_EQ(readProblem(&given, problem), FAGEN_UNSUPPORTED);
}

TEST(Problem, RowsOfOutputsMayInterleave) {
  const std::array<int64_t, 3> strides[] = {
      {4 * 8 * 512 * 64, 512 * 64, 64}, // packed, with room between batches
      {8 * 512 * 64, 64, 8 * 64},       // [batch, row, head, column]
      {64, 3 * 512 * 64, 3 * 64},       // [head, row, batch, column]
      {8 * 512 * 72, 512 * 72, 72},     // rows with gaps
  };
  for (const auto &stride : strides) {
    fagen_problem given = makeProblem();
    given.batch = 3;
    std::copy(stride.begin(), stride.end(), given.o_stride);
    given.lse_stride[0] = 512; // heads outside of batches
    given.lse_stride[1] = 3 * 512;
    Problem problem;
    EXPECT_EQ(readProblem(&given, problem), FAGEN_OK) << fagen_last_error();
  }
  fagen_problem given = makeProblem();
  given.heads = 1;
  given.o_stride[0] = given.o_stride[1] = 1; // of one batch and one head: junk
  given.o_stride[2] = 64;
  Problem problem;
  EXPECT_EQ(readProblem(&given, problem), FAGEN_OK) << fagen_last_error();
}

TEST(Problem, DefaultsArePackedAndForward) {
  fagen_problem given = makeProblem();
  given.batch = 2;
  given.heads = 6;
  given.kv_heads = 2;
  given.seq_kv = 100;
  given.head_dim_v = 32;
  Problem problem;
  ASSERT_EQ(readProblem(&given, problem), FAGEN_OK) << fagen_last_error();
  const device::AttentionParams &p = problem.params;
  EXPECT_EQ(p.heads_per_kv, 3);
  EXPECT_EQ(p.q_stride[2], 64);
  EXPECT_EQ(p.q_stride[1], 64 * 512);
  EXPECT_EQ(p.q_stride[0], 64 * 512 * 6);
  EXPECT_EQ(p.k_stride[0], 64 * 100 * 2);
  EXPECT_EQ(p.v_stride[1], 32 * 100);
  EXPECT_EQ(p.o_stride[0], 32 * 512 * 6);
  EXPECT_EQ(p.lse_stride[0], 512 * 6);
  EXPECT_EQ(p.lse_stride[1], 512);
  EXPECT_FLOAT_EQ(p.scale, 0.125f);
  EXPECT_FLOAT_EQ(p.scale_log2, 0.125f * 1.44269504f);
  EXPECT_EQ(problem.key, fagen_problem_key(FAGEN_PASS_FORWARD, FAGEN_DTYPE_F16, FAGEN_MASK_NONE, 64, 32));
}

TEST(Problem, ExplicitStridesOfZeroRepeat) {
  fagen_problem given = makeProblem();
  given.batch = 2;
  given.kv_heads = 8;
  given.head_dim_v = 64;
  given.lse_stride[0] = 8 * 512;
  given.lse_stride[1] = 512;
  given.o_stride[0] = 8 * 512 * 64;
  given.o_stride[1] = 512 * 64;
  given.o_stride[2] = 64;
  Problem problem;
  ASSERT_EQ(readProblem(&given, problem), FAGEN_OK) << fagen_last_error();
  EXPECT_EQ(problem.params.k_stride[2], 64); // absent: packed
  given.flags = FAGEN_FLAG_EXPLICIT;
  ASSERT_EQ(readProblem(&given, problem), FAGEN_OK) << fagen_last_error();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(problem.params.k_stride[i], 0) << i;
  EXPECT_EQ(problem.params.o_stride[2], 64);
}

TEST(Problem, JunkStridesOfSizeOneDimensionsAreDropped) {
  fagen_problem given = makeProblem();
  given.seq_q = 1;
  const int64_t junk = std::numeric_limits<int64_t>::min();
  given.q_stride[0] = junk;
  given.q_stride[1] = 64;
  given.q_stride[2] = junk;
  Problem problem;
  ASSERT_EQ(readProblem(&given, problem), FAGEN_OK) << fagen_last_error();
  EXPECT_EQ(problem.params.q_stride[0], 0);
  EXPECT_EQ(problem.params.q_stride[1], 64);
  EXPECT_EQ(problem.params.q_stride[2], 0);
}

TEST(Problem, BroadcastKeysAndOffsetsBeyond32Bits) {
  fagen_problem given = makeProblem();
  given.batch = 4;
  given.k_stride[2] = 64; // one K for every batch and head
  given.q_stride[0] = int64_t(1) << 40;
  given.q_stride[1] = int64_t(1) << 36;
  given.q_stride[2] = int64_t(1) << 24;
  Problem problem;
  ASSERT_EQ(readProblem(&given, problem), FAGEN_OK) << fagen_last_error();
  EXPECT_EQ(problem.params.k_stride[0], 0);
  EXPECT_EQ(problem.params.q_stride[0], int64_t(1) << 40);
  EXPECT_EQ(problem.commonAlignment, 16u);
}

TEST(Problem, AlignmentIsWhatPointersAndStridesShare) {
  fagen_problem given = makeProblem();
  given.alignment = 256;
  Problem problem;
  ASSERT_EQ(readProblem(&given, problem), FAGEN_OK);
  EXPECT_EQ(problem.commonAlignment, 128u); // rows of 64 halves
  given.v_stride[1] = 512 * 72;
  given.v_stride[2] = 72;
  ASSERT_EQ(readProblem(&given, problem), FAGEN_OK);
  EXPECT_EQ(problem.commonAlignment, 16u);
  given.v_stride[2] = 71;
  ASSERT_EQ(readProblem(&given, problem), FAGEN_OK);
  EXPECT_EQ(problem.commonAlignment, 2u);
}

TEST(Problem, ZeroScaleIsLegal) {
  fagen_problem given = makeProblem();
  given.has_scale = 1;
  Problem problem;
  ASSERT_EQ(readProblem(&given, problem), FAGEN_OK);
  EXPECT_EQ(problem.params.scale, 0.0f);
  EXPECT_EQ(problem.params.scale_log2, FLT_MIN);
}

TEST(Problem, EmptyProblemsAreLegal) {
  for (int64_t fagen_problem::*size :
       {&fagen_problem::batch, &fagen_problem::heads, &fagen_problem::seq_q, &fagen_problem::seq_kv}) {
    fagen_problem given = makeProblem();
    given.*size = 0;
    Problem problem;
    EXPECT_EQ(readProblem(&given, problem), FAGEN_OK) << fagen_last_error();
  }
}

} // namespace

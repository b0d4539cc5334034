// fagen: fagen_explain says why.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TestTable.h"

#include <gtest/gtest.h>

using namespace fagen::test;

namespace {

std::string explain(const fagen_table *table, const fagen_problem &problem, const fagen_device *device) {
  size_t size = fagen_explain(&table, 1, &problem, device, nullptr, 0);
  std::string text(size + 1, 'x');
  EXPECT_EQ(fagen_explain(&table, 1, &problem, device, text.data(), text.size()), size);
  text.resize(size);
  return text;
}

struct Explain : testing::Test {
  TestTable table{"k", {"prefill", "short", "unaligned"}};
  TestDevice device{89};
  fagen_problem problem = makeProblem();

  Explain() {
    fagen_row row = makeRow("k_prefill");
    table.add(row);
    row.variant = "k_short";
    row.schedule = 1;
    table.add(row);
    row.variant = "k_unaligned";
    row.schedule = 2;
    row.dispatch = FAGEN_ROW_FALLBACK;
    row.alignment = 2;
    table.add(row);
    row.variant = "k_legacy";
    row.schedule = 0;
    row.dispatch = FAGEN_ROW_BY_NAME;
    table.add(row);
    row.variant = "k_bf16";
    row.dtype = FAGEN_DTYPE_BF16;
    row.dispatch = FAGEN_ROW_DISPATCHED;
    table.add(row);
    table.select("seq_q <= 32", 1, seqQAtMost(32)).select("otherwise", 0);
  }
};

TEST_F(Explain, PickAndEveryOtherRowOfTheProblem) {
  EXPECT_EQ(explain(table.get(), problem, device),
            "problem  forward f16 head_dim 64, mask none; batch 1, heads 8, kv_heads 8, seq_q 512, seq_kv 512\n"
            "device   described sm_89, 58 SMs (sm_89)\n"
            "picked   k_prefill (sm_89): select line 'otherwise' of k; exact target\n"
            "select   k: seq_q <= 32 : short: false\n"
            "select   k: otherwise : prefill: true\n"
            "not      k_short (sm_89): fits, but select takes another schedule\n"
            "not      k_unaligned (sm_89): fits, but is the fallback\n"
            "not      k_legacy (sm_89): fits, but is reached by name only\n");
}

TEST_F(Explain, Fallback) {
  problem.alignment = 4;
  std::string text = explain(table.get(), problem, device);
  EXPECT_NE(text.find("picked   k_unaligned (sm_89): the fallback: no other row fits"), std::string::npos) << text;
  EXPECT_NE(text.find("not      k_prefill (sm_89): needs 16-byte alignment; base pointers and strides share 4\n"),
            std::string::npos)
      << text;
}

TEST_F(Explain, NearestRowsWhenNoneFits) {
  problem.head_dim_qk = 80;
  std::string text = explain(table.get(), problem, device);
  EXPECT_NE(text.find("picked   none: UNSUPPORTED: no row for forward f16 head_dim 80, mask none; nearest: forward f16 "
                      "head_dim 64, mask none (k_prefill); forward bf16 head_dim 64, mask none (k_bf16)\n"),
            std::string::npos)
      << text;
}

TEST_F(Explain, OnlyRowsByNameAreLeft) {
  TestTable hidden("h");
  fagen_row row = makeRow("h_legacy");
  row.dispatch = FAGEN_ROW_BY_NAME;
  hidden.add(row);
  std::string text = explain(hidden.get(), problem, device);
  EXPECT_NE(text.find("not      h_legacy (sm_89): fits, but is reached by name only\n"), std::string::npos) << text;
}

TEST_F(Explain, EveryReasonAgainstARow) {
  static const char bytes[] = "x";
  static const fagen_binary cubin80 = {FAGEN_BINARY_CUBIN, 80, 0, 0, bytes, 1};
  static const fagen_code linked = {nullptr, "k.cu", &cubin80, 1};
  TestTable others("o");
  fagen_row row = makeRow("exact");
  row.target = "sm_90a";
  row.first_sm = row.last_sm = 90;
  others.add(row);
  row = makeRow("newer");
  row.target = "sm_90";
  row.first_sm = 90;
  others.add(row);
  row = makeRow("unlinked");
  row.code = &linked;
  others.add(row);
  row = makeRow("large");
  row.launches[0].shared_bytes = 200000;
  others.add(row);
  row = makeRow("silent");
  row.lse = 0;
  others.add(row);
  row = makeRow("tiny");
  row.tile_rows = 1;
  others.add(row);
  problem.flags = FAGEN_FLAG_LSE;
  problem.batch = 1 << 20;
  TestDevice ada{89}, turing{75};
  std::string text = explain(others.get(), problem, ada);
  for (const char *reason :
       {"exact (sm_90a): its text for sm_90a runs on compute capability 9.0 only; the device has 8.9\n",
        "newer (sm_90): its text for sm_90 needs compute capability 9.0 or more; the device has 8.9\n",
        "large (sm_89): needs 200000 B of shared memory; the device has 101376 B\n",
        "silent (sm_89): cannot write LSE (lse = off)\n",
        "tiny (sm_89): would need more than 1000000000 CTAs: 512 tiles of 1 rows for each of batch 1048576 x heads "
        "8\n"})
    EXPECT_NE(text.find(reason), std::string::npos) << reason << text;
  TestDevice hopper{90};
  text = explain(others.get(), problem, hopper);
  EXPECT_NE(text.find("unlinked (sm_89): it was linked without source and without a binary for sm_90\n"),
            std::string::npos)
      << text;
}

TEST_F(Explain, InvalidProblem) {
  problem.batch = -1;
  EXPECT_EQ(explain(table.get(), problem, device), "INVALID: batch is -1; it must not be negative\n");
}

TEST_F(Explain, ShortBufferIsTerminated) {
  char text[12];
  const fagen_table *tables[] = {table.get()};
  EXPECT_GT(fagen_explain(tables, 1, &problem, device, text, sizeof(text)), 100u);
  EXPECT_STREQ(text, "problem  fo");
}

} // namespace

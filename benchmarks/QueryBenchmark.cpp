// fagen: time of fagen_query over a table of 1000 rows (performance.md, P8: at most 200 ns), and of
// fagen_query_program. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../unittests/Runtime/TestRecipe.h"

#include <benchmark/benchmark.h>

using namespace fagen::test;

namespace {

/// 1000 rows: 2 types x 2 masks x 25 head dims x 2 targets, each with 3 schedules, a fallback and one by name.
TestTable thousandRows() {
  TestTable table("k", {"prefill", "short", "long", "unaligned"});
  for (uint32_t dtype : {FAGEN_DTYPE_F16, FAGEN_DTYPE_BF16})
    for (uint32_t mask : {FAGEN_MASK_NONE, FAGEN_MASK_CAUSAL})
      for (uint32_t headDim = 8; headDim <= 200; headDim += 8)
        for (uint32_t sm : {80u, 89u})
          for (uint32_t schedule = 0; schedule < 5; ++schedule) {
            fagen_row row = makeRow("row");
            row.dtype = dtype;
            row.mask = mask;
            row.head_dim_qk = row.head_dim_v = headDim;
            row.sm = sm;
            row.schedule = schedule % 4;
            row.dispatch = schedule == 3   ? FAGEN_ROW_FALLBACK
                           : schedule == 4 ? FAGEN_ROW_BY_NAME
                                           : FAGEN_ROW_DISPATCHED;
            row.alignment = schedule == 3 ? 2 : 16;
            table.add(row);
          }
  table.select("seq_q <= 32", 1, seqQAtMost(32)).select("seq_q <= 128", 2, seqQAtMost(128)).select("otherwise", 0);
  return table;
}

/// One problem after the other, so that neither branches nor rows are always the same.
void query(benchmark::State &state, uint32_t alignment, size_t tableCount) {
  TestTable one = thousandRows();
  TestTable other = thousandRows();
  const fagen_table *tables[] = {one.get(), other.get()};
  if (tables[0]->row_count != 1000)
    return state.SkipWithError("the table has not 1000 rows");
  TestDevice device(89);
  std::vector<fagen_problem> problems;
  for (int64_t i = 0; i < 64; ++i) {
    fagen_problem problem = makeProblem();
    problem.dtype = i % 2 ? FAGEN_DTYPE_F16 : FAGEN_DTYPE_BF16;
    problem.mask = i % 3 ? FAGEN_MASK_NONE : FAGEN_MASK_CAUSAL;
    problem.head_dim_qk = 8 + i * 37 % 25 * 8;
    problem.heads = 32;
    problem.kv_heads = 8;
    problem.seq_q = i * 29 % 512;
    problem.alignment = alignment;
    problems.push_back(problem);
  }
  fagen_choice choice = fagen_choice_init();
  size_t i = 0;
  for (auto _ : state) {
    if (fagen_query(tables, tableCount, &problems[i++ % problems.size()], device, &choice))
      return state.SkipWithError(fagen_last_error());
    benchmark::DoNotOptimize(choice);
  }
}

BENCHMARK_CAPTURE(query, rows1000, 16, 1);
BENCHMARK_CAPTURE(query, rows1000_fallback, 2, 1);
BENCHMARK_CAPTURE(query, rows2x1000, 16, 2);

/// Sizes from extents, promises, maps, counts of CTAs; the program stands after 1000 rows of attention's.
void queryProgram(benchmark::State &state) {
  TestRecipe recipe;
  TestTable table = thousandRows();
  const fagen_table *tables[] = {table.add(recipe.row()).get()};
  TestDevice device(89);
  TestCall made;
  const fagen_named_tensor result = made.tensors[3]; // which a query fills in
  fagen_choice choice = fagen_choice_init();
  for (auto _ : state) {
    made.tensors[3] = result;
    if (fagen_query_program(tables, 1, &made.call, device, &choice))
      return state.SkipWithError(fagen_last_error());
    benchmark::DoNotOptimize(choice);
  }
}

BENCHMARK(queryProgram);

} // namespace

BENCHMARK_MAIN();

// fagen: every shipped kernel compiles by NVRTC, with the embedded headers only, and dispatch reaches it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fagen/fagen.hpp>
#include <fagen/table.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>

// kernel_tables.inc has a line SHIPPED(kernel) for each directory of generated/.
extern "C" {
#define SHIPPED(kernel) extern const fagen_table fagen_table_##kernel;
#include "kernel_tables.inc"
#undef SHIPPED
}

namespace {

std::vector<const fagen_row *> shippedRows() {
  std::vector<const fagen_row *> rows;
  const fagen_table *const tables[] = {
#define SHIPPED(kernel) &fagen_table_##kernel,
#include "kernel_tables.inc"
#undef SHIPPED
  };
  for (const fagen_table *table : tables) {
    fagen::check(fagen_table_check(table));
    for (uint32_t i = 0; i < table->row_count; ++i)
      rows.push_back(&table->rows[i]);
  }
  return rows;
}

const fagen_table *tableOf(const fagen_row &row) {
#define SHIPPED(kernel)                                                                                                \
  if (&row >= fagen_table_##kernel.rows && &row < fagen_table_##kernel.rows + fagen_table_##kernel.row_count)          \
    return &fagen_table_##kernel;
#include "kernel_tables.inc"
#undef SHIPPED
  return nullptr;
}

/// A problem that the row computes.
fagen_problem problemOf(const fagen_row &row) {
  fagen_problem problem = fagen_problem_init();
  problem.pass = row.pass;
  problem.dtype = row.dtype;
  problem.mask = row.mask;
  problem.batch = 2;
  problem.heads = 8;
  problem.seq_q = problem.seq_kv = 512;
  problem.head_dim_qk = row.head_dim_qk;
  problem.head_dim_v = row.head_dim_v;
  return problem;
}

/// Whether dispatch has a row, no fallback, of this row's problem and target that does with this alignment.
bool hasAligned(const fagen_table &table, const fagen_row &row, uint32_t alignment) {
  return std::any_of(table.rows, table.rows + table.row_count, [&](const fagen_row &other) {
    return (fagen_row_key(&other) ^ fagen_row_key(&row)) >> FAGEN_KEY_PROBLEM_SHIFT == 0 && other.sm == row.sm &&
           other.dispatch == FAGEN_ROW_DISPATCHED && other.alignment <= alignment;
  });
}

/// A cache of this process's own, so that everything is compiled.
struct Kernels : testing::TestWithParam<const fagen_row *> {
  static void SetUpTestSuite() {
    std::string name = std::filesystem::temp_directory_path() / "fagen-kernels-XXXXXX";
    setenv("FAGEN_CACHE_DIR", mkdtemp(name.data()), 1);
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(getenv("FAGEN_CACHE_DIR")); }
};

/// Those that NVRTC compiles.
struct CompiledKernels : Kernels {};

/// f16 without a mask and bf16 with one: the others differ from these by a type or by what a loop hides. Each where
/// FAGEN_NVRTC_KERNELS is set, as `scripts/long nvrtc` has it.
std::vector<const fagen_row *> compiledRows() {
  std::vector<const fagen_row *> rows = shippedRows();
  if (!getenv("FAGEN_NVRTC_KERNELS"))
    std::erase_if(
        rows, [](const fagen_row *row) { return (row->dtype == FAGEN_DTYPE_F16) != (row->mask == FAGEN_MASK_NONE); });
  return rows;
}

TEST_P(CompiledKernels, CompileByNvrtc) {
  const fagen_row &row = *GetParam();
  fagen::Device device = fagen::Device::describe(row.sm, 58);
  fagen_problem problem = problemOf(row);
  problem.variant = row.variant;
  fagen::Choice choice = device.query({tableOf(row)}, problem);
  ASSERT_EQ(choice.get().row, &row);
  ASSERT_NO_THROW(choice.prepare()) << fagen_last_error();
  EXPECT_STREQ(choice.info().origin, "nvrtc");
}

TEST_P(Kernels, DispatchReachesTheirProblemAtAnyAlignment) {
  const fagen_row &row = *GetParam();
  fagen::Device device = fagen::Device::describe(row.sm, 58);
  for (uint32_t alignment : {16, 8, 4, 2}) {
    fagen_problem problem = problemOf(row);
    problem.alignment = alignment;
    const fagen_row &picked = *device.query({tableOf(row)}, problem).get().row;
    EXPECT_LE(picked.alignment, alignment);
    EXPECT_NE(picked.dispatch, uint32_t(FAGEN_ROW_BY_NAME));
    EXPECT_EQ(picked.dispatch == FAGEN_ROW_FALLBACK, !hasAligned(*tableOf(row), row, alignment))
        << picked.variant << ", alignment " << alignment;
  }
}

std::string nameOf(const testing::TestParamInfo<const fagen_row *> &info) {
  return std::string(info.param->variant) + "_" + info.param->target;
}

INSTANTIATE_TEST_SUITE_P(Shipped, CompiledKernels, testing::ValuesIn(compiledRows()), nameOf);
INSTANTIATE_TEST_SUITE_P(Shipped, Kernels, testing::ValuesIn(shippedRows()), nameOf);

} // namespace

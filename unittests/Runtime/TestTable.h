// fagen: tables made by hand, for tests and benchmarks of the runtime.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/table.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

namespace fagen::test {

/// A row of plausible sizes: forward f16 64 : 64, no mask, sm_89, with source, 16-byte alignment.
inline fagen_row makeRow(const char *variant) {
  static const fagen_code code = {"extern \"C\" __global__ void k() {}\n", "sm_89/k.cu", nullptr, 0};
  fagen_row row = {};
  row.variant = variant;
  row.target = "sm_89";
  row.sm = 89;
  row.first_sm = 80;
  row.pass = FAGEN_PASS_FORWARD;
  row.dtype = FAGEN_DTYPE_F16;
  row.mask = FAGEN_MASK_NONE;
  row.lse = 1;
  row.head_dim_qk = row.head_dim_v = 64;
  row.alignment = 16;
  row.tile_rows = 128;
  row.tile_keys = 64;
  row.launch_count = 1;
  row.launches[0] = {"k", FAGEN_GRID_TILES, 128, 48 * 1024, 0};
  row.code = &code;
  return row;
}

/// Owns a table: sorts rows, computes keys and points the table at them. Rows get their order of addition.
class TestTable {
public:
  explicit TestTable(const char *kernel, std::vector<const char *> schedules = {""}) : schedules(std::move(schedules)) {
    table.struct_size = sizeof(fagen_table);
    table.abi = FAGEN_ABI;
    table.kernel = kernel;
    table.spec = "test.fa";
    table.row_size = sizeof(fagen_row);
  }

  TestTable &add(fagen_row row) {
    row.order = uint32_t(rows.size());
    rows.push_back(row);
    return *this;
  }

  /// A select line; without a condition it is the otherwise line.
  TestTable &select(const char *text, uint32_t schedule, std::vector<fagen_op> condition = {}) {
    programs.push_back(std::move(condition));
    lines.push_back({programs.back().data(), uint32_t(programs.back().size()), schedule, text});
    return *this;
  }

  TestTable &claim(const char *text, std::vector<fagen_op> condition) {
    programs.push_back(std::move(condition));
    table.claim = programs.back().data();
    table.claim_text = text;
    table.claim_size = uint32_t(programs.back().size());
    return *this;
  }

  /// Forms; their params stay where they are. A row's mask is FAGEN_MASK_FORM_0 + the form's place here.
  TestTable &forms(std::vector<fagen_form> list) {
    formList = std::move(list);
    table.forms = formList.data();
    table.form_count = uint32_t(formList.size());
    table.form_size = sizeof(fagen_form);
    return *this;
  }

  /// As a table of before there were claims.
  TestTable &withoutClaims() {
    table.struct_size = uint32_t(offsetof(fagen_table, claim));
    return *this;
  }

  const fagen_table *get() {
    if (lines.empty())
      select("otherwise", 0);
    auto byKey = [](const fagen_row &a, const fagen_row &b) { return fagen_row_key(&a) < fagen_row_key(&b); };
    std::sort(rows.begin(), rows.end(), byKey);
    keys.clear();
    for (const fagen_row &row : rows)
      keys.push_back(fagen_row_key(&row));
    table.rows = rows.data();
    table.keys = keys.data();
    table.schedules = schedules.data();
    table.select = lines.data();
    table.row_count = uint32_t(rows.size());
    table.schedule_count = uint32_t(schedules.size());
    table.select_count = uint32_t(lines.size());
    return &table;
  }

private:
  fagen_table table = {};
  std::vector<fagen_row> rows;
  std::vector<uint64_t> keys;
  std::vector<const char *> schedules;
  std::vector<fagen_select> lines;
  std::deque<std::vector<fagen_op>> programs;
  std::vector<fagen_form> formList;
};

/// A described device for the life of a test.
class TestDevice {
public:
  explicit TestDevice(uint32_t sm, uint32_t sms = 58) { fagen_device_describe(sm, sms, &device); }
  ~TestDevice() { fagen_device_destroy(device); }
  TestDevice(const TestDevice &) = delete;
  TestDevice &operator=(const TestDevice &) = delete;
  operator fagen_device *() const { return device; }

private:
  fagen_device *device = nullptr;
};

/// Forward f16, head dim 64, batch 1, 8 heads, 512 x 512.
inline fagen_problem makeProblem() {
  fagen_problem problem = fagen_problem_init();
  problem.dtype = FAGEN_DTYPE_F16;
  problem.batch = 1;
  problem.heads = 8;
  problem.seq_q = problem.seq_kv = 512;
  problem.head_dim_qk = 64;
  return problem;
}

/// seq_q <= limit
inline std::vector<fagen_op> seqQAtMost(int64_t limit) {
  return {{FAGEN_OP_VARIABLE, 0, FAGEN_VAR_SEQ_Q}, {FAGEN_OP_CONSTANT, 0, limit}, {FAGEN_OP_LE, 0, 0}};
}

/// The variant that fagen_query picks, or the status's name.
inline std::string pick(std::vector<const fagen_table *> tables, const fagen_problem &problem,
                        const fagen_device *device) {
  fagen_choice choice = fagen_choice_init();
  fagen_status status = fagen_query(tables.data(), tables.size(), &problem, device, &choice);
  return status ? fagen_status_name(status) : choice.row->variant;
}

/// A table of one row, and what fagen_query says of it.
struct QueriedRow {
  QueriedRow(const fagen_row &row, const fagen_problem &problem, const fagen_device *device) {
    const fagen_table *tables[] = {table.add(row).get()};
    status = fagen_table_check(tables[0]);
    if (status == FAGEN_OK)
      status = fagen_query(tables, 1, &problem, device, &choice);
  }

  TestTable table{"k"}; ///< has the row that the choice points at
  fagen_choice choice = fagen_choice_init();
  fagen_status status; ///< of the check or of the query
};

/// What a table of the row is refused for when one of its launches has this grid and number; empty where it is not.
inline std::string refusalOfLaunch(fagen_row row, uint32_t launch, uint32_t grid, uint32_t number) {
  row.launches[launch].grid = grid;
  row.launches[launch].reserved = number;
  TestTable table("k");
  return fagen_table_check(table.add(row).get()) == FAGEN_OK ? "" : fagen_last_error();
}

/// How it is, for the row of the name "row".
inline const std::string kUnknownLaunch =
    "table k, row 0 (row): a launch has no symbol, an unknown grid, or not 1 to 1024 threads";

} // namespace fagen::test

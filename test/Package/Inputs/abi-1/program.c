/* fagen: a program of the first ABI: a table by hand, a query, and each function that fills a struct. Guards behind the
 * structs that the library fills tell whether it wrote beyond what this program knows.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <fagen/table.h>
#include <stdio.h>
#include <string.h>

#define GUARDED(type)                                                                                                  \
  struct {                                                                                                             \
    type value;                                                                                                        \
    unsigned char guard[256];                                                                                          \
  }
#define FILL_GUARD(place) memset((place).guard, 0xA5, sizeof((place).guard))

static int isWhole(const unsigned char *guard) {
  for (int i = 0; i < 256; ++i)
    if (guard[i] != 0xA5)
      return 0;
  return 1;
}

static const fagen_code kCode = {"extern \"C\" __global__ void k() {}", "k.cu", NULL, 0};
static const char *const kSchedules[] = {"only"};
static const fagen_select kSelect[] = {{NULL, 0, 0, "otherwise"}};

int main(void) {
  fagen_row row = {0};
  row.variant = "k", row.target = "sm_80", row.sm = row.first_sm = 80;
  row.pass = FAGEN_PASS_FORWARD, row.dtype = FAGEN_DTYPE_F16, row.mask = FAGEN_MASK_NONE, row.lse = 1;
  row.head_dim_qk = row.head_dim_v = 64, row.alignment = 16, row.tile_rows = row.tile_keys = 64;
  row.launch_count = 1, row.code = &kCode;
  row.launches[0].symbol = "k", row.launches[0].grid = FAGEN_GRID_TILES, row.launches[0].threads = 128;
  const uint64_t key = fagen_row_key(&row);
  const fagen_table table = {sizeof(table), FAGEN_ABI, "k", "k.fa",      &row, &key,
                             kSchedules,    kSelect,   1,   sizeof(row), 1,    1};
  const fagen_table *const tables[] = {&table};

  fagen_device *device = NULL;
  fagen_problem problem = fagen_problem_init();
  problem.dtype = FAGEN_DTYPE_F16, problem.batch = 1, problem.heads = 8, problem.head_dim_qk = 64;
  problem.seq_q = problem.seq_kv = 512;
  GUARDED(fagen_choice) choice;
  GUARDED(fagen_choice_info) info;
  GUARDED(fagen_device_info) gpu;
  FILL_GUARD(choice), FILL_GUARD(info), FILL_GUARD(gpu);
  choice.value = fagen_choice_init(), info.value = fagen_choice_info_init(), gpu.value = fagen_device_info_init();
  if (fagen_table_check(&table) || fagen_device_describe(86, 84, &device) ||
      fagen_query(tables, 1, &problem, device, &choice.value) || fagen_choice_get_info(&choice.value, &info.value) ||
      fagen_device_get_info(device, &gpu.value)) {
    printf("%s\n", fagen_last_error());
    return 1;
  }
  printf("%s (%s), %llu CTAs of %u, workspace %zu, on %s\n", info.value.variant, info.value.target,
         (unsigned long long)info.value.grid, info.value.threads, choice.value.workspace_bytes, gpu.value.name);
  fagen_tensors tensors = fagen_tensors_init();
  tensors.q = tensors.k = tensors.v = tensors.o = (void *)0x1000;
  printf("%s\n", fagen_status_name(fagen_run(&choice.value, &tensors, NULL, 0, NULL)));
  printf("guards %s\n", isWhole(choice.guard) && isWhole(info.guard) && isWhole(gpu.guard) ? "whole" : "overwritten");
  fagen_device_destroy(device);
  return 0;
}

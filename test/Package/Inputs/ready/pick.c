/* Which kernel fagen_query picks from all ready sets: those that are linked, where READY is defined; else pick SETS
 * NAME... loads them. Reads lines "GPU SMS DTYPE MASK BATCH HEADS KV_HEADS SEQ_Q SEQ_KV HEAD_DIM[/HEAD_DIM_V] : ..."
 * and writes each with the kernel and its target after the colon. Other lines it writes as they are. */
#include <fagen/table.h>
#include <stdio.h>
#include <string.h>

#ifdef READY
#include <ready/tables.h>

static const fagen_table *const *loadTables(int argc, char **argv, size_t *count) {
  *count = argc == 1 ? FAGEN_READY_TABLE_COUNT : 0;
  return argv ? fagen_ready_tables : NULL;
}
#else
enum { MOST = 32 };

static const fagen_table *const *loadTables(int argc, char **argv, size_t *count) {
  static const fagen_table *tables[MOST];
  char path[4096];
  for (int i = 2; i < argc && *count < MOST; ++i) {
    snprintf(path, sizeof(path), "%s/%s", argv[1], argv[i]);
    if (fagen_table_load(path, &tables[(*count)++])) {
      printf("%s\n", fagen_last_error());
      return NULL;
    }
  }
  return tables;
}
#endif

int main(int argc, char **argv) {
  char line[256], dtype[8], mask[8];
  size_t count = 0;
  const fagen_table *const *tables = loadTables(argc, argv, &count);
  if (!tables)
    return 1;
  while (fgets(line, sizeof(line), stdin)) {
    unsigned gpu, sms;
    long long n[7];
    const int read = sscanf(line, "%u %u %7s %7s %lld %lld %lld %lld %lld %lld/%lld", &gpu, &sms, dtype, mask, &n[0],
                            &n[1], &n[2], &n[3], &n[4], &n[5], &n[6]);
    if (read < 10) {
      fputs(line, stdout);
      continue;
    }
    fagen_device *device = NULL;
    fagen_problem problem = fagen_problem_init();
    fagen_choice choice = fagen_choice_init();
    fagen_choice_info info = fagen_choice_info_init();
    problem.dtype = strcmp(dtype, "bf16") ? FAGEN_DTYPE_F16 : FAGEN_DTYPE_BF16;
    problem.mask = strcmp(mask, "causal") ? FAGEN_MASK_NONE : FAGEN_MASK_CAUSAL;
    problem.batch = n[0], problem.heads = n[1], problem.kv_heads = n[2];
    problem.seq_q = n[3], problem.seq_kv = n[4], problem.head_dim_qk = n[5];
    problem.head_dim_v = read == 11 ? n[6] : 0;
    fagen_device_describe(gpu, sms, &device);
    line[strcspn(line, ":")] = 0;
    if (fagen_query(tables, count, &problem, device, &choice))
      printf("%s: %.60s\n", line, fagen_last_error());
    else if (!fagen_choice_get_info(&choice, &info))
      printf("%s: %s %s\n", line, info.variant, info.target);
    fagen_device_destroy(device);
  }
  return 0;
}

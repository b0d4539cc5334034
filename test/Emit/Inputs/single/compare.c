/* attn_select of the header and fagen_query of the same spec's table, on problems that are drawn: they refuse the
 * same, and pick the same kernel with the same splits, CTAs and workspace. compare DIRECTORY */
#include "attn.h"

#include <fagen/fagen.h>
#include <fagen/table.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state = 1;
static int64_t draw(int64_t count) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (int64_t)((state >> 33) % (uint64_t)count);
}
static int64_t pick(const int64_t *of, int count) { return of[draw(count)]; }

static void drawProblem(attn_problem *p) {
  static const int64_t dims[] = {64, 64, 128, 128, 256, 96},
                       lengths[] = {0, 1, 3, 17, 32, 33, 64, 500, 2048, 16384, 100000};
  static const int64_t groups[] = {1, 1, 2, 4, 8};
  memset(p, 0, sizeof(*p));
  p->dtype = 1 + (int)draw(2);
  p->causal = (int)draw(2);
  p->wants_lse = (int)draw(2);
  p->batch = draw(20) ? 1 + draw(4) : draw(100000000);
  p->kv_heads = 1 + draw(8);
  p->heads = p->kv_heads * pick(groups, 5) + !draw(50);
  p->seq_q = pick(lengths, 11);
  p->seq_kv = pick(lengths, 11);
  p->head_dim_qk = p->head_dim_v = pick(dims, 6);
  p->alignment = draw(5) ? 16 : 1 << draw(5);
  if (draw(3))
    return;
  p->q_stride[2] = p->heads * p->head_dim_qk; /* [batch, rows, heads, columns] */
  p->q_stride[1] = p->head_dim_qk;
  p->q_stride[0] = p->q_stride[2] * p->seq_q + draw(3);
  p->k_stride[2] = draw(2) ? p->head_dim_qk : (int64_t)1 << (30 + draw(24));
  p->k_stride[0] = draw(9) - 1;
  p->o_stride[2] = p->head_dim_v + draw(2) * 4;
  p->o_stride[1] = p->o_stride[2] * p->seq_q;
  p->o_stride[0] = draw(4) ? p->o_stride[1] * p->heads : 8;
  p->lse_stride[0] = draw(2) * p->seq_q * p->heads;
  p->lse_stride[1] = draw(2) * p->seq_q;
}

static fagen_problem asked(const attn_problem *p) {
  fagen_problem f = fagen_problem_init();
  f.dtype = (uint32_t)p->dtype;
  f.mask = p->causal ? FAGEN_MASK_CAUSAL : FAGEN_MASK_NONE;
  f.flags = p->wants_lse ? FAGEN_FLAG_LSE : 0;
  f.batch = p->batch, f.heads = p->heads, f.kv_heads = p->kv_heads;
  f.seq_q = p->seq_q, f.seq_kv = p->seq_kv;
  f.head_dim_qk = p->head_dim_qk, f.head_dim_v = p->head_dim_v;
  memcpy(f.q_stride, p->q_stride, sizeof(f.q_stride));
  memcpy(f.k_stride, p->k_stride, sizeof(f.k_stride));
  memcpy(f.v_stride, p->v_stride, sizeof(f.v_stride));
  memcpy(f.o_stride, p->o_stride, sizeof(f.o_stride));
  memcpy(f.lse_stride, p->lse_stride, sizeof(f.lse_stride));
  f.alignment = (uint32_t)p->alignment;
  return f;
}

static int differs(const fagen_table *table, const attn_gpu *gpu, const fagen_device *device, int *found) {
  attn_problem problem;
  attn_choice ours;
  drawProblem(&problem);
  fagen_problem same = asked(&problem);
  fagen_choice theirs = fagen_choice_init();
  fagen_choice_info info = fagen_choice_info_init();
  const fagen_status status = fagen_query(&table, 1, &same, device, &theirs);
  const char *refusal = attn_select(&problem, gpu, &ours);
  if (!refusal != !status) {
    printf("%s, but %s\n", refusal ? refusal : "taken", status ? fagen_last_error() : "taken");
    return 1;
  }
  if (refusal)
    return 0;
  ++*found;
  fagen_choice_get_info(&theirs, &info);
  if (!strcmp(info.variant, attn_kernels[ours.kernel].name) && (int64_t)info.grid == ours.ctas * ours.splits &&
      theirs.workspace_bytes == ours.workspace_bytes && fagen_choice_zero_bytes(&theirs) == ours.zero_bytes)
    return 0;
  printf("%s x %lld, workspace %zu, zero %zu; %s x %lld, %zu, %zu\n", attn_kernels[ours.kernel].name,
         (long long)(ours.ctas * ours.splits), ours.workspace_bytes, ours.zero_bytes, info.variant,
         (long long)info.grid, theirs.workspace_bytes, fagen_choice_zero_bytes(&theirs));
  return 1;
}

int main(int argc, char **argv) {
  const fagen_table *table = NULL;
  int gpus[] = {75, 80, 89, 90, 120}, different = 0, found = 0;
  if (argc != 2 || fagen_table_load(argv[1], &table)) {
    printf("%s\n", fagen_last_error());
    return 1;
  }
  for (int i = 0; i < 5; ++i) {
    fagen_device *device = NULL;
    fagen_device_info info = fagen_device_info_init();
    fagen_device_describe((uint32_t)gpus[i], 58 + 74 * (i == 3), &device);
    fagen_device_get_info(device, &info);
    const attn_gpu gpu = {gpus[i], (int)info.sm_count, info.shared_bytes_per_block};
    for (int n = 0; n < 20000 && different < 10; ++n)
      different += differs(table, &gpu, device, &found);
    fagen_device_destroy(device);
  }
  printf("%s: %d different, %s\n", table->kernel, different,
         found > 2000 ? "thousands of kernels found" : "too few found");
  fagen_table_release(table);
  return different != 0;
}

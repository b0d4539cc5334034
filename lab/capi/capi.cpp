// fagen: the C ABI and a manifest loader in one shared library, for ctypes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/kernel_set/manifest.h"
#include "lab/reference/criteria.h"

#include <algorithm>
#include <cstdio>

using fagen::lab::KernelSet;

/// Tables of one kernel directory (or of every one in a directory); they live until fagen_tables_free.
struct fagen_tables {
  std::vector<std::unique_ptr<KernelSet>> sets;
  std::vector<const fagen_table *> tables;
};

#define FAGEN_EXPORT extern "C" __attribute__((visibility("default")))

/// NULL, with the reason in `error`, when the directory cannot be loaded.
FAGEN_EXPORT fagen_tables *fagen_tables_from_manifest(const char *directory, char *error, size_t errorSize) {
  try {
    auto loaded = std::make_unique<fagen_tables>();
    loaded->sets = fagen::lab::loadKernelSets({directory});
    for (const auto &set : loaded->sets)
      loaded->tables.push_back(set->table());
    return loaded.release();
  } catch (const std::exception &problem) {
    snprintf(error, errorSize, "%s", problem.what());
    return nullptr;
  }
}

FAGEN_EXPORT void fagen_tables_free(fagen_tables *tables) { delete tables; }

FAGEN_EXPORT const fagen_table *const *fagen_tables_list(const fagen_tables *tables, size_t *count) {
  *count = tables->tables.size();
  return tables->tables.data();
}

/// The name of variant `index` of all tables, in spec order; NULL past the last.
FAGEN_EXPORT const char *fagen_tables_variant(const fagen_tables *tables, size_t index) {
  for (const auto &set : tables->sets) {
    auto rows = set->rows();
    if (index < rows.size())
      return rows[index]->variant;
    index -= rows.size();
  }
  return nullptr;
}

/// The reference's LSE of attention without a mask, in f64, and how far tensor cores' sums may move it
/// (docs/Checking.md, "LSE and tensor cores"). `q` is [heads, seq_q, head_dim] and `k` [heads, seq_kv, head_dim],
/// dense, in host memory, of the dtype (FAGEN_DTYPE_F16 or _BF16); the results are [heads, seq_q].
FAGEN_EXPORT void fagen_reference_lse(const uint16_t *q, const uint16_t *k, int64_t heads, int64_t seqQ, int64_t seqKv,
                                      int64_t headDim, uint32_t dtype, double scale, double *lse, double *lseLoss) {
  fagen::lab::Case c;
  c.shape = {1, heads, heads, seqQ, seqKv, headDim, 1};
  c.dtype = dtype == FAGEN_DTYPE_F16 ? fagen::lab::DType::F16 : fagen::lab::DType::BF16;
  c.scale = scale;
  const fagen::lab::DenseInputs inputs{
      {q, q + c.shape.qElements()}, {k, k + c.shape.kElements()}, std::vector<uint16_t>(c.shape.kvHeads * seqKv)};
  const fagen::lab::Reference reference = fagen::lab::CpuReference().compute(c, inputs);
  std::copy(reference.lse.begin(), reference.lse.end(), lse);
  std::copy(reference.lseLoss.begin(), reference.lseLoss.end(), lseLoss);
}
/// What is allowed of every kernel: |LSE - reference| <= this * max(1, |reference|).
FAGEN_EXPORT double fagen_lse_tolerance() { return fagen::lab::kTolerances.lse; }

/// Keeps the runtime's functions in the library although nothing here calls them.
FAGEN_EXPORT const void *const fagen_capi_functions[] = {reinterpret_cast<const void *>(fagen_device_create),
                                                         reinterpret_cast<const void *>(fagen_device_destroy),
                                                         reinterpret_cast<const void *>(fagen_query),
                                                         reinterpret_cast<const void *>(fagen_prepare),
                                                         reinterpret_cast<const void *>(fagen_run),
                                                         reinterpret_cast<const void *>(fagen_explain),
                                                         reinterpret_cast<const void *>(fagen_choice_get_info),
                                                         reinterpret_cast<const void *>(fagen_last_error),
                                                         reinterpret_cast<const void *>(fagen_device_get_info),
                                                         reinterpret_cast<const void *>(fagen_status_name),
                                                         reinterpret_cast<const void *>(fagen_device_make_current)};

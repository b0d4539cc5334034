// fagen: the C ABI and a manifest loader in one shared library, for ctypes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "manifest.h"

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

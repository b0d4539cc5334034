// fagen: the reason of a thread's last failure.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/table.h>

#include <cstddef>

namespace fagen {

/// The size that a struct of this ABI has at least: that of its first version.
template <typename T> inline constexpr uint32_t kLeastSize = sizeof(T);
template <> inline constexpr uint32_t kLeastSize<fagen_choice> = offsetof(fagen_choice, scratch_bytes);
template <> inline constexpr uint32_t kLeastSize<fagen_table> = offsetof(fagen_table, claim);
template <> inline constexpr uint32_t kLeastSize<fagen_tensors> = offsetof(fagen_tensors, args);

/// Keeps the formatted text for fagen_last_error and returns the status. Allocates nothing; a long text is cut.
[[gnu::format(printf, 2, 3), gnu::cold]] fagen_status fail(fagen_status status, const char *format, ...);

/// Whether a caller's struct is of this ABI and knows at least its first `size` bytes; otherwise fails.
template <typename T> fagen_status checkStruct(const T *value, const char *name, uint32_t size = kLeastSize<T>) {
  if (!value)
    return fail(FAGEN_INVALID, "%s is NULL", name);
  if (value->abi != FAGEN_ABI)
    return fail(FAGEN_ABI_MISMATCH, "%s has abi %u, this library %u", name, value->abi, FAGEN_ABI);
  if (value->struct_size < size)
    return fail(FAGEN_INVALID, "%s.struct_size is %u; set it to sizeof(%s), at least %u", name, value->struct_size,
                name, size);
  return FAGEN_OK;
}

} // namespace fagen

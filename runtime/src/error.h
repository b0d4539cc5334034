// fagen: the reason of a thread's last failure.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "structs.h"

namespace fagen {

/// Keeps the formatted text for fagen_last_error and returns the status. Allocates nothing; a long text is cut.
[[gnu::format(printf, 2, 3), gnu::cold]] fagen_status fail(fagen_status status, const char *format, ...);

/// Whether a caller's struct is of this ABI and of one of its versions; otherwise fails.
template <typename T> fagen_status checkStruct(const T *value, const char *name) {
  if (!value)
    return fail(FAGEN_INVALID, "%s is NULL", name);
  if (value->abi != FAGEN_ABI)
    return fail(FAGEN_ABI_MISMATCH, "%s has abi %u, this library %u", name, value->abi, FAGEN_ABI);
  if (value->struct_size < kLeastSize<T>)
    return fail(FAGEN_INVALID, "%s.struct_size is %u; set it to sizeof(%s), at least %u", name, value->struct_size,
                name, kLeastSize<T>);
  if (endsInField<T>(value->struct_size))
    return fail(FAGEN_INVALID, "%s.struct_size is %u, which ends within a field; set it to sizeof(%s): %zu", name,
                value->struct_size, name, sizeof(T));
  return FAGEN_OK;
}

} // namespace fagen

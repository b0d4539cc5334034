// fagen: whether two tensors share memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

namespace fagen {

/// Where the elements of a tensor are: rank at most 8, sizes and strides in elements.
struct Elements {
  const void *data;
  int64_t rank;
  const int64_t *sizes, *strides;
  int64_t bytes; ///< of an element
};

/// Whether an element of one tensor lies where one of the other does; also where that takes too long to tell, as of
/// strides that nothing has in practice. Allocates nothing.
bool mayOverlap(const Elements &a, const Elements &b);

} // namespace fagen

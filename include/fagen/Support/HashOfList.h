// fagen: a hash of lists of numbers and pointers, for the standard library's hash tables.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/ADT/Hashing.h"

#include <cstddef>

namespace fagen {

struct HashOfList {
  template <typename List> size_t operator()(const List &list) const {
    return llvm::hash_combine_range(list.begin(), list.end());
  }
};

} // namespace fagen

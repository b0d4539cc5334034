// fagen: the dispatch table of a kernel as C++ text, for <fagen/table.h>.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Emit/Plan.h"

namespace fagen {

/// table.cpp: rows sorted by key, select lines as postfix programs. Includes only <fagen/table.h>; clean under
/// clang-format's LLVM style without a column limit.
std::string emitTable(const KernelPlan &plan);

/// table.h: what an application includes to name the table.
std::string emitTableHeader(const KernelPlan &plan);

/// The kernel's variants in the order of the table's rows, as indices into plan.variants.
std::vector<unsigned> tableOrder(const KernelPlan &plan);

/// How dispatch may pick a variant: FAGEN_ROW_DISPATCHED, _FALLBACK or _BY_NAME, in <fagen/table.h>'s numbers.
unsigned dispatchOf(const Variant &variant);

} // namespace fagen

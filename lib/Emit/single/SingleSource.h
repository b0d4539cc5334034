// fagen: what the CUDA sources of --emit=single have in common, of attention's kernels and of programs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Emit/Plan.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <set>
#include <string>

namespace fagen {

/// A text in which each `from` is `to`.
std::string replaceAll(std::string text, llvm::StringRef from, llvm::StringRef to);

/// With the names in it begun by `name`: attn_run is gemm_run.
std::string withName(llvm::StringRef text, llvm::StringRef name);

/// A text of lib/Emit/single by its file's name, with these names, and values in the place of words.
std::string filledText(llvm::StringRef file, llvm::StringRef name,
                       std::initializer_list<std::pair<llvm::StringRef, std::string>> values = {});

/// "sm_80, sm_90a".
std::string listTargets(const KernelPlan &plan);

/// <name>.cu: the parts of the device library that the variants and the host's side use, the variants in this order,
/// each in a namespace <name>_detail::<symbol>, and the host's side, in which `launches` takes the place of @launches@.
/// `columns` are those of accumulators.
std::string singleSource(const KernelPlan &plan, llvm::ArrayRef<llvm::StringRef> sources,
                         llvm::ArrayRef<unsigned> order, llvm::StringRef name, const std::string &host,
                         llvm::StringRef launches, const std::set<unsigned> &columns);

} // namespace fagen

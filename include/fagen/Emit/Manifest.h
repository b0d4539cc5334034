// fagen: manifest.json: everything that the table has, the plan of every variant, and the list of files.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Emit/Plan.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"

namespace fagen {

/// The row of the kernel's variant number `order`: most of a manifest is rows, and they can be made side by side.
std::string emitRow(const VariantPlan &plan, unsigned order);

/// What that row has in addition to its launches and its plan, by the names of <fagen/table.h>.
llvm::json::Object rowOf(const VariantPlan &plan, unsigned order);

/// As the manifest spells them; in capitals after FAGEN_OP_ and FAGEN_VAR_ as <fagen/table.h> does.
llvm::StringRef wordOf(SelectOp::Kind kind);
llvm::StringRef wordOf(SelectVariable variable);

/// A program's plan alone, without a variant: what emitRow says that does not come from the spec. JSON.
std::string emitPlan(const VariantPlan &plan, llvm::StringRef program);

/// Makes the rows that variants do not have yet. JSON with sorted keys: the same plan gives the same bytes. Besides the
/// kernel's own files (sources, table, CMakeLists.txt, the manifest itself) it describes each row so fully that a tool
/// can build the table from it.
std::string emitManifest(const KernelPlan &plan);

/// What stands in the manifest's place while the files change: it lists those that are there before and after, and has
/// no rows. `older` is the manifest that was there, or empty.
std::string emitUnfinishedManifest(const KernelPlan &plan, llvm::StringRef older);

/// The files of a kernel's directory, sorted; emitManifest lists them.
std::vector<std::string> filesOf(const KernelPlan &plan);

/// The files that an earlier run's manifest lists; empty for text that is no manifest. Paths that lead out of the
/// directory are left out, since the caller removes what this run does not make.
std::vector<std::string> filesOfManifest(llvm::StringRef text);

} // namespace fagen

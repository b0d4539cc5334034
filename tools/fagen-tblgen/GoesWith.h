// fagen: which values of keys go with which, for tables and docs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/TableGen/Record.h"

#include <string>

namespace fagen::tblgen {

/// {{OptionKey::Overlap, {unsigned(Overlap::Intra), unsigned(Overlap::Both)}, ""}, ...}, of GoesWith records. A key or
/// a value that SpecOptions.td lacks is an error.
std::string goesWithList(const llvm::RecordKeeper &records, const std::vector<llvm::Record *> &rules);

/// "; goes with `mma = wgmma`, and `roles = specialized`" of an option's value: by its own rules, and by what
/// families take.
std::string goesWithText(const llvm::Record &option, const llvm::Record &value);

/// The same of the numbers of an option that are not its default.
std::string goesWithText(const llvm::Record &option);

} // namespace fagen::tblgen

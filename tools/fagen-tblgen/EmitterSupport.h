// fagen: what the emitters share: record order, guards, quoting, file headers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TableGen/Record.h"

#include <string>
#include <vector>

namespace fagen::tblgen {

/// All records of a class in the order of their declaration, which is the order that tables and enumerations have.
std::vector<llvm::Record *> recordsInOrder(const llvm::RecordKeeper &records, llvm::StringRef className);

/// The two comment lines that begin a generated file; `source` is the .td that it comes from.
void emitFileHeader(llvm::raw_ostream &os, llvm::StringRef what, llvm::StringRef source);

/// A C++ string literal.
std::string quoted(llvm::StringRef text);

/// first_warp as a C++ enumerator: FirstWarp; and as the name of a function: firstWarp.
std::string upperCamel(llvm::StringRef text);
std::string lowerCamel(llvm::StringRef text);

/// Feature::CpAsync | ..., as an expression of the bit mask type, from a list of Feature records.
std::string featureMask(const std::vector<llvm::Record *> &features);

/// Opens `#ifdef name`, and closes and undefines it at the end of the scope.
class Guard {
public:
  Guard(llvm::raw_ostream &os, llvm::StringRef name) : os(os), name(name) { os << "\n#ifdef " << name << "\n"; }
  ~Guard() { os << "#undef " << name << "\n#endif // " << name << "\n"; }
  Guard(const Guard &) = delete;
  Guard &operator=(const Guard &) = delete;

private:
  llvm::raw_ostream &os;
  std::string name;
};

} // namespace fagen::tblgen

// fagen: tells people about hazards that nothing covers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Analysis/Launches.h"
#include "fagen/Support/Diagnostics.h"

namespace fagen {

/// The op as textual IR has it, on one line.
std::string textOf(const ir::Op &op);

/// What one role of a kernel lacks to be free of races: one error each, naming both accesses.
class HazardReport {
public:
  /// With `internal`, the name of a pass: what is found is a mistake of ours, not of the input.
  HazardReport(const HazardInfo &info, Diagnostics &diags, llvm::StringRef internal = {})
      : info(info), diags(diags), internal(internal) {}

  void error(const Location &location, const llvm::Twine &message) const;
  /// Roles that cannot be analysed, ops that race with themselves, copies that no wait completes: no barrier mends
  /// them.
  bool reportUnmendable(const ir::Kernel &kernel) const;
  /// A hazard that is not covered.
  void reportOpen(const Hazard &hazard) const;
  /// Hazards that the places of a schedule's at(...) leave open: one error where that was set, by the first of them.
  void reportPlaces(llvm::ArrayRef<const Hazard *> open, const Location &place) const;

private:
  std::string messageOf(const Hazard &hazard) const;
  void noteAccesses(const Hazard &hazard) const;

  const HazardInfo &info;
  Diagnostics &diags;
  llvm::StringRef internal;
};

/// Uses of global buffers by CTAs of one launch that nothing orders, one error each, naming both; true when there is
/// none. `internal` as above.
bool reportGlobal(const ir::Program &program, const ir::Kernel &kernel, Diagnostics &diags, llvm::StringRef internal);
/// What the launches of a program hand each other, as print-hazards lists it for one kernel.
void printGlobal(const ir::Program &program, const ir::Kernel &kernel, llvm::raw_ostream &os);

/// Which hazards would be open without it, of each barrier and wait of a kernel of one role, in program order.
std::vector<std::string> coversOfRole(const ir::Role &role, const HazardInfo &info);
/// Whether there is nothing to report: the role is analysed, and barriers and waits order all that meets.
bool areCovered(const HazardInfo &info);
/// Numbers barriers and waits, from 1, and says so of each in the ledger.
void fillLedgerOfRole(ir::Kernel &kernel, llvm::ArrayRef<std::string> covers);

} // namespace fagen

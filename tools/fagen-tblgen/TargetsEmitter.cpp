// fagen: writes fagen/Target/Targets.inc: features and the table of targets.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "EmitterSupport.h"

#include "llvm/TableGen/Error.h"
#include "llvm/TableGen/TableGenBackend.h"

using namespace llvm;

namespace fagen::tblgen::targetsEmitter {
namespace {

void validate(const Record &target) {
  int64_t first = target.getValueAsInt("FirstSm"), last = target.getValueAsInt("LastSm"),
          sm = target.getValueAsInt("Sm");
  if (first > sm || (last != 0 && last < sm))
    PrintFatalError(target.getLoc(), "target '" + target.getValueAsString("Name") + "' cannot run its own text");
  if (target.getValueAsBit("Exact") && (first != sm || last != sm))
    PrintFatalError(target.getLoc(), "an exact target runs on its own compute capability alone");
}

/// CpAsync,
void emitFeatures(raw_ostream &os, const std::vector<Record *> &features) {
  Guard guard(os, "GET_FEATURE_ENUM");
  for (const Record *feature : features)
    os << "/// " << feature->getValueAsString("Doc") << "\n" << feature->getName() << ",\n";
}

/// {.name = "sm_89", .sm = 89, ...},
void emitTarget(raw_ostream &os, const Record &target) {
  static constexpr std::pair<const char *, const char *> kNumbers[] = {
      {"sm", "Sm"},
      {"firstSm", "FirstSm"},
      {"lastSm", "LastSm"},
      {"sharedPerBlock", "SharedPerBlock"},
      {"sharedPerSm", "SharedPerSm"},
      {"sharedReserved", "SharedReserved"},
      {"registersPerSm", "RegistersPerSm"},
      {"maxRegistersPerThread", "MaxRegistersPerThread"},
      {"maxWarpsPerSm", "MaxWarpsPerSm"},
      {"maxBlocksPerSm", "MaxBlocksPerSm"}};
  os << "{.name = " << quoted(target.getValueAsString("Name")) << ",\n";
  for (auto [field, value] : kNumbers)
    os << " ." << field << " = " << target.getValueAsInt(value) << ",\n";
  os << " .exact = " << (target.getValueAsBit("Exact") ? "true" : "false") << ",\n"
     << " .features = " << featureMask(target.getValueAsListOfDefs("Features")) << "},\n";
}

void emitTargets(RecordKeeper &records, raw_ostream &os) {
  std::vector<Record *> targets = recordsInOrder(records, "Target");
  for (const Record *target : targets)
    validate(*target);

  std::vector<Record *> features = recordsInOrder(records, "Feature");
  emitFileHeader(os, "features and targets.", "Targets.td");
  emitFeatures(os, features);
  {
    Guard guard(os, "GET_FEATURE_NAMES");
    for (const Record *feature : features)
      os << quoted(feature->getValueAsString("Text")) << ",\n";
  }
  Guard guard(os, "GET_TARGET_TABLE");
  for (const Record *target : targets)
    emitTarget(os, *target);
}

TableGen::Emitter::Opt registration("gen-targets", emitTargets, "features and the table of targets");

} // namespace
} // namespace fagen::tblgen::targetsEmitter

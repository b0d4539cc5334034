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
  const Record &policy = *target.getValueAsDef("ThePolicy");
  if (policy.getValueAsListOfDefs("Registers").size() > 4 || policy.getValueAsListOfDefs("Arrangements").size() > 2)
    PrintFatalError(policy.getLoc(), "Target.h has room for 4 splits of registers and 2 arrangements");
  if (target.getValueAsBit("Exact") && (first != sm || last != sm))
    PrintFatalError(target.getLoc(), "an exact target runs on its own compute capability alone");
}

/// CpAsync,
void emitFeatures(raw_ostream &os, const std::vector<Record *> &features) {
  Guard guard(os, "GET_FEATURE_ENUM");
  for (const Record *feature : features)
    os << "/// " << feature->getValueAsString("Doc") << "\n" << feature->getName() << ",\n";
}

/// {.loadWarps = 4, ...}
void emitPolicy(raw_ostream &os, const Record &policy) {
  static constexpr std::pair<const char *, const char *> kNumbers[] = {
      {"loadWarps", "LoadWarps"},       {"judgeRegisters", "JudgeRegisters"}, {"cachedMiB", "CachedMiB"},
      {"mostTurnRows", "MostTurnRows"}, {"longRowBytes", "LongRowBytes"},     {"longTurnTiles", "LongTurnTiles"},
      {"halfOfSmKiB", "HalfOfSmKiB"}};
  os << "{";
  for (auto [field, value] : kNumbers)
    os << "." << field << " = " << policy.getValueAsInt(value) << ", ";
  const std::vector<Record *> registers = policy.getValueAsListOfDefs("Registers");
  os << ".groups = " << registers.size() << ", .registers = {{";
  for (const Record *split : registers)
    os << "{" << split->getValueAsInt("Load") << ", " << split->getValueAsInt("Math") << "}, ";
  const std::vector<Record *> arrangements = policy.getValueAsListOfDefs("Arrangements");
  os << "}}, .arrangements = {";
  for (const Record *arrangement : arrangements)
    os << "Arrangement::" << arrangement->getValueAsString("Enumerator") << ", ";
  os << "}}";
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
     << " .features = " << featureMask(target.getValueAsListOfDefs("Features")) << ",\n .policy = ";
  emitPolicy(os, *target.getValueAsDef("ThePolicy"));
  os << "},\n";
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
  {
    Guard guard(os, "GET_ARRANGEMENT_ENUM");
    for (const Record *arrangement : recordsInOrder(records, "Arrangement"))
      os << arrangement->getValueAsString("Enumerator") << ", ///< " << arrangement->getValueAsString("Doc") << "\n";
  }
  Guard guard(os, "GET_TARGET_TABLE");
  for (const Record *target : targets)
    emitTarget(os, *target);
}

TableGen::Emitter::Opt registration("gen-targets", emitTargets, "features and the table of targets");

} // namespace
} // namespace fagen::tblgen::targetsEmitter

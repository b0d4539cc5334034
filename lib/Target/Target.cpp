// fagen: lookup in the table of targets.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Target/Target.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace fagen {

static constexpr StringLiteral kFeatureNames[] = {
#define GET_FEATURE_NAMES
#include "fagen/Target/Targets.inc"
};

static constexpr TargetInfo kTargets[] = {
#define GET_TARGET_TABLE
#include "fagen/Target/Targets.inc"
};

StringRef toString(Feature feature) { return kFeatureNames[unsigned(feature)]; }

ArrayRef<TargetInfo> allTargets() { return kTargets; }

const TargetInfo *lookupTarget(StringRef name) {
  const TargetInfo *found = find_if(kTargets, [&](const TargetInfo &target) { return target.name == name; });
  return found == std::end(kTargets) ? nullptr : found;
}

const TargetInfo &targetOrFirst(StringRef name) {
  const TargetInfo *const found = lookupTarget(name);
  return found ? *found : kTargets[0];
}

const TargetInfo *firstTargetWith(FeatureMask needs) {
  const TargetInfo *found = find_if(kTargets, [&](const TargetInfo &target) { return target.hasAll(needs); });
  return found == std::end(kTargets) ? nullptr : found;
}

} // namespace fagen

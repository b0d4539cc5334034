// fagen: the GPUs that text can be generated for, from Targets.td.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <array>
#include <cstdint>

namespace fagen {

/// What a GPU generation can do.
enum class Feature : uint8_t {
#define GET_FEATURE_ENUM
#include "fagen/Target/Targets.inc"
};

/// A set of features, one bit each.
using FeatureMask = uint32_t;
constexpr FeatureMask featureBit(Feature feature) { return FeatureMask(1) << unsigned(feature); }
llvm::StringRef toString(Feature feature);

/// What may be done with shared memory that is left where CTAs take tile after tile.
enum class Arrangement : uint8_t {
  None,
#define GET_ARRANGEMENT_ENUM
#include "fagen/Target/Targets.inc"
};

/// Registers of a thread, by role.
struct RoleRegisters {
  unsigned load = 0, math = 0;
};

/// What passes choose by, where the hardware leaves a choice; Targets.td has the reasons.
struct TargetPolicy {
  unsigned loadWarps = 0;
  unsigned judgeRegisters = 0;
  unsigned cachedMiB = 0, mostTurnRows = 0, longRowBytes = 0, longTurnTiles = 0;
  unsigned halfOfSmKiB = 0;
  unsigned groups = 0;                          ///< the most that compute, where registers are handed over
  std::array<RoleRegisters, 4> registers = {};  ///< of one group that computes, of two, ...
  std::array<Arrangement, 2> arrangements = {}; ///< the first that fits
};

struct TargetInfo {
  llvm::StringRef name;        ///< "sm_89", as specs, nvcc and NVRTC write it
  unsigned sm = 0;             ///< compute capability, 10 * major + minor
  unsigned firstSm = 0;        ///< text of this target runs on GPUs from here on ...
  unsigned lastSm = 0;         ///< ... up to here; 0: no end
  unsigned sharedPerBlock = 0; ///< bytes that one CTA can have after opting in
  unsigned sharedPerSm = 0;    ///< bytes that all CTAs of an SM share
  unsigned sharedReserved = 0; ///< bytes that the system takes of each CTA's share
  unsigned registersPerSm = 0;
  unsigned maxRegistersPerThread = 0;
  unsigned maxWarpsPerSm = 0;
  unsigned maxBlocksPerSm = 0;
  bool exact = false; ///< architecture-specific: one compute capability, machine code only, no PTX
  FeatureMask features = 0;
  TargetPolicy policy = {};

  bool has(Feature feature) const { return hasAll(featureBit(feature)); }
  bool hasAll(FeatureMask needs) const { return (features & needs) == needs; }
  /// Whether a GPU of this compute capability can run text that was generated for the target.
  bool runsOn(unsigned deviceSm) const { return deviceSm >= firstSm && (lastSm == 0 || deviceSm <= lastSm); }
};

/// Every target, in the order of Targets.td. The entries live as long as the process.
llvm::ArrayRef<TargetInfo> allTargets();

/// The target of that name, or null.
const TargetInfo *lookupTarget(llvm::StringRef name);

/// The target of a kernel's IR; the first one where there is none of that name.
const TargetInfo &targetOrFirst(llvm::StringRef name);

/// The first target that has all of these features, or null: what a message names when a value needs more.
const TargetInfo *firstTargetWith(FeatureMask needs);

} // namespace fagen

// fagen: what the keys of one variant must satisfy together, with its target and its instruction.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks do not print: they return findings, because the same checks decide which tune choices are dropped silently.
#pragma once

#include "OptionValues.h"

namespace fagen {

/// One rule that a variant breaks.
struct Finding {
  llvm::StringRef check; ///< which rule; one place hears of a rule once
  OptionKey key;         ///< the message points at the value of this key
  std::string message;
  std::vector<std::pair<OptionKey, std::string>> notes;
};

/// Checks a variant and derives its warp layout. Rules that read an unknown key are left out; values that are defaults
/// (not in `given`) are not blamed. Shared memory is no rule of these: findSharedProblem() has it.
std::vector<Finding> checkVariant(const TargetInfo &target, const Problem &problem, Schedule &schedule, KeySet unknown,
                                  KeySet given);

/// Why a variant's target has too little shared memory for it; nothing where it fits, or was not measured.
std::optional<std::string> findSharedProblem(const Variant &variant);

/// Fills the values that policy chooses: copy, swizzle, q_in, p_in, roles where they are not in `given`.
void chooseDefaults(const TargetInfo &target, Schedule &schedule, KeySet given);

} // namespace fagen

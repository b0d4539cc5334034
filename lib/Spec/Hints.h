// fagen: what was probably meant by a word that specs do not have.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Spec/Options.h"
#include "fagen/Target/Target.h"

namespace fagen {

/// What to write instead of a key of another program or paper: "say mask = causal"; empty: nothing is known of it.
llvm::StringRef hintForKey(llvm::StringRef word);

/// The same of a key's value.
llvm::StringRef hintForValue(OptionKey key, llvm::StringRef word);

/// What to write instead of a target that there is not: "an A100 is sm_80"; empty: nothing is known of it.
std::string hintForTarget(llvm::StringRef word);

/// What a key takes: "rows x keys, each from 1 to 1024: 128 x 64". With a target, the values that it has.
std::string describeValues(const OptionInfo &option, const TargetInfo *target = nullptr);

} // namespace fagen

// fagen: the forms of a kernel as its table and manifest have them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Spec/Spec.h"

#include "llvm/Support/JSON.h"

#include <string>

namespace fagen {

/// Definitions that the table needs before it names kForms; empty without forms.
std::string tableForms(const KernelSpec &kernel);

/// The manifest's array.
llvm::json::Array manifestForms(const KernelSpec &kernel);

} // namespace fagen

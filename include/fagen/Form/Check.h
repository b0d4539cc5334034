// fagen: forms as they are written to forms whose names, types and ranges are right.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Form/Form.h"
#include "fagen/Parse/AST.h"
#include "fagen/Support/Diagnostics.h"

namespace fagen::form {

/// Nothing after a reported mistake. Warns of params and lets that are not used, and of scores that may be NaN or
/// +infinity.
std::optional<Form> checkForm(const ast::Form &form, Diagnostics &diags);

} // namespace fagen::form

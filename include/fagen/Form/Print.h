// fagen: forms as text that parses.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Form/Form.h"

#include "llvm/Support/raw_ostream.h"

namespace fagen::form {

/// Every operator in parentheses, so that precedence has no say.
std::string printValue(const Node &node, const Form &form);

/// The whole block, a line a statement. Checked again it is the same form.
void printForm(const Form &form, llvm::raw_ostream &os);

} // namespace fagen::form

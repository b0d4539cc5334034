// fagen: values of forms as postfix programs: what the laboratory's reference interprets.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Words with a blank between them. Each pushes a number, or takes its operands from the stack and pushes its result:
//   12  -3  1.5  -inf     a number
//   @k                    what a place is
//   $cap  =d              a scalar param, a let
//   doc[2]                a read with so many indices
//   neg  !  +  <=  tanh   an operator; ?: of three
#pragma once

#include "fagen/Form/Form.h"

namespace fagen::form {

std::string toPostfix(const Node &node, const Form &form);

} // namespace fagen::form

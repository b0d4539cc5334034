// fagen: mistakes of the user.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <stdexcept>

namespace fagen::lab {

/// A mistake in what the user typed or in a file the user named: the tool prints it and exits 1.
struct UserError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// There is no GPU. What to do instead differs from command to command.
struct NoGpu : UserError {
  using UserError::UserError;
};

} // namespace fagen::lab

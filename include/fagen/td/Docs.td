// fagen: everything that docs/Options.md lists.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

include "fagen/td/MmaInstrs.td"
include "fagen/td/Targets.td"

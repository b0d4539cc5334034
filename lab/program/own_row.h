// fagen: a table's row of a plan that stands alone, so that its calls are checked and packed as those of tables are.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/table.h>

#include <memory>
#include <string>
#include <vector>

namespace fagen {
struct LoadedRecipe;
}

namespace fagen::lab {

/// The row of a plan. All buffers are the caller's to give, also those that the runtime would keep in its workspace.
struct OwnRow {
  /// `json` is what ProgramPlan::parse accepted; what plans may leave out is filled in.
  OwnRow(const std::string &json, const std::string &name);
  ~OwnRow();
  OwnRow(const OwnRow &) = delete;

  fagen_row row = {};
  /// Real numbers that stand in the plan by value: they have names here, and are given with every call.
  std::vector<fagen_named_number> constants;

private:
  std::unique_ptr<LoadedRecipe> recipe;
  std::vector<std::string> names; ///< of the constants, and the program's
};

} // namespace fagen::lab

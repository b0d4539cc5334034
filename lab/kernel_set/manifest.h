// fagen: a generated kernel set: the table that fagen_table_load makes of it, and what else its manifest says.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lab/cases/form.h"
#include "runtime/src/fields.h"

#include <fagen/table.h>

#include <filesystem>
#include <memory>

namespace fagen::lab {

/// Options of a row that dispatch does not need, as `list` shows them.
struct RowFacts {
  int warps = 0, stages = 0;
  std::string mma, copy, accum, tanh;
};

/// Where an op of a launch stands in the .cu file.
struct OpLine {
  int line = 0;
  std::string op;        ///< "copy_wait@9"
  std::string spec;      ///< "l4_fp16.fa:20"; empty when no line of the spec asked for it
  unsigned site = 0;     ///< of a barrier or wait; else 0
  bool isSilent = false; ///< a loop, a branch, or one that only works on registers: of these the emulator sees nothing
};

/// A line of the spec's `require`: "time < 0.95 * sdpa".
struct Gate {
  std::string name;     ///< registers, spills, shared, ctas, error, time
  std::string relation; ///< <, <=, ==, !=, >=, >
  double value = 0;     ///< the right side; of a baseline, its factor
  std::string baseline; ///< sdpa, fa2, cudnn, cublas; empty: none
  std::string text;     ///< as the spec has it

  bool holds(double figure) const;
};

class KernelSet {
public:
  struct Storage;

  /// Reads DIR/manifest.json and the .cu files it names. UserError with path and reason for one that is missing,
  /// damaged or of another ABI.
  static std::unique_ptr<KernelSet> load(const std::filesystem::path &directory);
  ~KernelSet();

  const fagen_table *table() const;
  const std::filesystem::path &directory() const;
  std::vector<const fagen_row *> rows() const; ///< of attention, in the order of the spec
  std::vector<const fagen_row *> programs() const;
  std::filesystem::path sourcePath(const fagen_row &row) const;
  const RowFacts &facts(const fagen_row &row) const;
  /// What stands in the place of the row's mask; null where that is none or causal.
  FormPtr form(const fagen_row &row) const;
  const std::vector<FormPtr> &forms() const;
  const std::vector<Gate> &gates() const;
  /// What the manifest says of the row. Reading it throws FieldError.
  Field entry(const fagen_row &row) const;
  /// What fagen --tuned took the row's values and its threshold from, a line each.
  const std::vector<std::string> &evidence(const fagen_row &row) const;
  /// The ops of one of the row's launches, in the order of lines; none when the manifest does not list them.
  const std::vector<OpLine> &ops(const fagen_row &row, uint32_t launch) const;

private:
  explicit KernelSet(std::unique_ptr<Storage> storage);
  std::unique_ptr<Storage> storage;
};

/// Every kernel set of the paths: a directory with a manifest, or one whose sub-directories have them. At least one.
std::vector<std::unique_ptr<KernelSet>> loadKernelSets(const std::vector<std::string> &paths);

} // namespace fagen::lab

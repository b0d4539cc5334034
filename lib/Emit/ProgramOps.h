// fagen: ops of kernels with parameters of their own, as text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "OpEmitter.h"
#include "ProgramParams.h"

#include "fagen/Emit/Kernel.h"
#include "fagen/IR/Views.h"

#include "llvm/ADT/StringSet.h"

namespace fagen {

/// Whether the buffer is of those that others overlay: the rings from the one on that they begin with.
bool isOverlain(const ir::Kernel &kernel, const ir::Buffer &buffer);

/// Of a program whose kernels have parameters of their own.
KernelText emitOwnText(const ir::Program &program, bool hasClocks);

/// Inside a role's function lets, indices and loop variables are variables; `cta` holds parameters and shared memory,
/// `r` the role's registers. What one thread does for its role stands under `is_first`.
class ProgramOpEmitter : public OpEmitter {
public:
  ProgramOpEmitter(const ir::Kernel &kernel, const TileDivisors &divisors, const ir::Role &role,
                   const ProgramParams &params, const Points &points, IndentedStream &out, std::vector<OpPlan> &places);

  /// Ops that stand together and are one thread's stand under one condition.
  void emitBlock(llvm::ArrayRef<const ir::Op *> ops) override;
  std::string expression(const ir::Expr &expr) const override;
  /// "cta.params.a + row * cta.params.K": the address of an element.
  std::string address(const ir::Buffer &tensor, llvm::ArrayRef<ir::Expr> index) const;
  std::string offsetOf(const ir::Buffer &tensor, llvm::ArrayRef<ir::Expr> index) const;
  /// The tile of a CTA that has one.
  void emitTile();
  /// The element of an index tensor, read.
  std::string elementAt(const ir::Buffer &tensor, llvm::ArrayRef<ir::Expr> index) const;
  /// The lets that do not stay from tile to tile, and the indices that they follow from.
  void emitPlace();
  /// What the warp's first row and its first column are in tiles that the role's warps divide.
  std::string rowOfWarp() const;
  std::string columnOfWarp() const;
  /// A pointer for each ring that running copies fill; after lets.
  void emitRunningSources();
  /// The lets of a role that the indices do not change.
  void emitFixedLets();
  /// Its ops.
  void emitRole();
  /// Where the kernel leaves clocks: of each warp, or of the thread that works for its role.
  void startClock();
  void stopClock();

private:
  bool emitOwn(const ir::Op &op) override;
  bool isByOneThread() const;
  std::string elementType(ir::ElementType type) const override;
  std::string heading(const ir::Op &op) const override;
  bool isInKvRing(const ir::Buffer &ring) const override { return isOverlain(kernel, ring); }
  bool emitKeptRows(const ir::Op &op);
  void emitCopy(ir::CopyIssueOp<const ir::Op> copy) override;
  void emitStore(const ir::Op &op);
  void emitBulkCopy(ir::CopyIssueOp<const ir::Op> copy) override;
  void emitBulkStore(const ir::Op &op);
  void emitStoreLse(const ir::Op &op);
  std::string nextOf(const ir::Buffer &ring) const;
  std::string rowStrideOf(const ir::Matrix &matrix) const;
  void emitMerge(const ir::Op &op);
  std::string offsetsOf(const ir::Matrix &matrix) const;
  std::string placedRows(const ir::Operand &operand) const;
  std::string strideOfParts(const ir::Buffer &tensor) const;
  std::string partsOf(const ir::Op &op, const ir::Operand &parts) const;
  void emitMergeParts(ir::MergePartsOp<const ir::Op> merge);
  void emitStoreNumber(ir::StoreNumberOp<const ir::Op> store);
  void emitTranspose(ir::TransposeOp<const ir::Op> transpose);
  void emitPlanRows(ir::PlanRowsOp<const ir::Op> plan);
  void emitLoop(const ir::Op &op);
  void emitBodyOf(const ir::Op &owner);
  void emitTiles(const ir::Op &op);
  void emitTicket(const ir::Op &op);
  std::string tileCount() const;
  std::string tileAt(const std::string &ticket) const;
  void emitLet(const ir::Let &let);
  size_t findPlaceAnew(llvm::ArrayRef<const ir::Op *> ops) const;
  /// As the text has it, with sizes and scalars as members of the parameters.
  ir::Expr spelled(const ir::Expr &expr) const;
  ir::Expr withReads(const ir::Expr &expr) const;
  std::string vectorBytes() const;
  std::string rowsOf(const ir::Matrix &matrix) const;
  std::string cornerOf(const ir::Op &op, const ir::Expr &row) const;
  bool isUsed(llvm::StringRef name) const { return used.contains(name); }

  const ir::Role &ofRole;
  const ProgramParams &params;
  void nameFirstKeys(const ir::Op &loop);
  std::vector<std::pair<ir::Expr, std::string>> firstKeys; ///< of the step that is written
  bool isUnderFirst = false;                               ///< whether one thread of the role is here
  const llvm::StringSet<> ofTiles;                         ///< indices, and the lets that follow from them
  const std::string tile, drawn, next, clock;              ///< what numbers of tiles, tickets and the clock are called
  llvm::StringSet<> used;                                  ///< names that the expressions at hand depend on
};

/// Whether one thread of the role does it for all: every op of a body then.
bool isByFirstThread(const ir::Op &op);

/// Expressions of sizes, with these as members of the parameters.
ir::Expr ofParams(const ir::Kernel &kernel, const ir::Expr &expr, llvm::StringRef params);

/// Whether a copy by cp_async reads memory to find rows, so that lanes share the work (ops/found_rows.h).
bool findsRows(ir::CopyIssueOp<const ir::Op> copy);

/// What a thread of the role keeps in registers: the fragments that its ops name.
std::vector<const ir::Buffer *> fragmentsOf(const ir::Role &role);
/// The loop over tiles, where nothing outside of it names a fragment: registers are declared inside; else null.
const ir::Op *ownerOfRegisters(const ir::Kernel &kernel, const ir::Role &role);

/// The op's own, and those of the matrices in global memory that it names.
void forEachExprInText(const ir::Op &op, llvm::function_ref<void(const ir::Expr &)> visit);

/// In parentheses where a product needs them.
std::string asFactor(const ir::Expr &expr);

/// The indices of the grid, and the lets that follow from them.
llvm::StringSet<> namesOfTiles(const ir::Kernel &kernel);
/// The loop over the tiles of a persistent CTA.
bool isLoopOverTiles(const ir::Kernel &kernel, const ir::Op &op);

} // namespace fagen

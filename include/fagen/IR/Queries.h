// fagen: questions about the structure of a kernel, which passes and analyses ask instead of names.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/ExprAnalysis.h"
#include "fagen/IR/Measures.h"
#include "fagen/IR/OpClasses.h"
#include "fagen/IR/Patterns.h"
#include "fagen/IR/RunValues.h"

#include "llvm/ADT/DenseSet.h"

namespace fagen::ir {

// Copies and mbarriers.

/// Whether the copy engine does it.
bool isBulkCopy(const Op &op);
/// Whether each thread's part is complete when a copy_wait of that thread says so.
bool isThreadAsyncCopy(const Op &op);
/// Whether the op copies into the buffer.
bool isCopyTo(const Op &op, const Buffer *buffer);

/// Whether the op arrives, or waits, at the mbarrier.
bool isArrivalAt(const Op &op, const Buffer *bar);
bool isWaitAt(const Op &op, const Buffer *bar);

/// The mbarrier that says that a position of the buffer is filled, or left; null where it has none.
Buffer *fullOf(const Buffer &buffer);
Buffer *emptyOf(const Buffer &buffer);

/// Who does what the op says; the role where it does not say.
Actor actorOf(const Op &op);

/// The number after all named barriers that ops of the kernel use; 0 is the CTA's.
int64_t firstFreeBarrier(const Kernel &kernel);

// Roles.

/// How the role's warps divide its tiles: as it says, or as the constants kRowWarps and kKeyWarps do; where its warps
/// are fewer, one below the other.
WarpGrid warpGridOf(const Kernel &kernel, const Role &role);
/// How many rows of a tile a warp has: those of its fragments. Nothing where there are none.
std::optional<unsigned> rowsOfWarp(const Kernel &kernel);
/// How many rows a CTA has at once: those of the first fragments that ops name, of all warps, or of a product's
/// results; of a combine a row each warp. Nothing of other kernels.
std::optional<unsigned> rowsOfTile(const Kernel &kernel);
/// How many bytes a thread copies or stores at once: kVectorBytes, or the most there are.
unsigned vectorBytesOf(const Kernel &kernel);
/// Says of a part of a loop what of the whole it is, where the loop says what it is about.
void tellPart(Op &part, llvm::StringRef what);
/// Registers that a thread has when the kernel begins, where roles then take and give some.
unsigned registersOfLaunch(const Kernel &kernel);

/// The roles that copy in bulk, or by cp_async what others use; none of kernels whose only role does both.
llvm::SmallVector<Role *, 2> fillersOf(Kernel &kernel);
/// The roles that are none of these.
llvm::SmallVector<Role *, 2> usersBeside(Kernel &kernel, llvm::ArrayRef<Role *> fillers);
/// Those of them that issue products, or multiply.
llvm::SmallVector<Role *, 2> multipliersBeside(Kernel &kernel, llvm::ArrayRef<Role *> fillers);

/// The barrier at the head of a role's body at which all warps of the CTA meet; the end of its ops where there is none.
Ops::iterator headBarrier(Block &body);

/// Whether the kernel may begin before the launch before it has ended.
bool awaitsLaunches(const Kernel &kernel);
/// Whether it does so at the very head of its roles, before its lets.
bool awaitsLaunchesAtItsHead(const Kernel &kernel);
/// Whether lets read memory, or a form's numbers may lie there.
bool readsAtItsHead(const Kernel &kernel);

/// The rings that copies of the role fill, in the order of their first copies.
llvm::SmallVector<Buffer *, 4> ringsFilledBy(const Role &role);

/// The ops in fenced votes.
llvm::DenseSet<const Op *> fencedOps(const Role &role);

// Products.

/// The left operand in shared memory of the products that the role issues; null where there is none, or more than one.
Buffer *sharedLeftOperand(const Role &role);
/// Of a product that is issued what it takes of the left operand from registers: the operands after acc, a and b that
/// are there.
llvm::SmallVector<Operand, 1> columnsInRegisters(const Op &op);
/// The right operand of the products that add to the fragment; null where there is none.
Buffer *rightOperandInto(const Role &role, const Buffer *accumulator);
/// By how many steps products of the ring come later than the loop that they stand in, in whichever role: K(j) and V(j
/// - 1) in step j are one.
int64_t lagOf(const Kernel &kernel, const Buffer *ring);

// Loops and lets.

/// The let that the expression is, by name; null where it is another expression.
const Let *letOf(const Kernel &kernel, const Expr &expr);
/// The let with this value, whatever constants either is written with; null where there is none.
const Let *letWith(const Kernel &kernel, const Expr &value);

/// The value of a let that is read there, an i32 of any value: of the one there is, or of a new one before all
/// others but those that it names.
Expr letOfRead(Kernel &kernel, const Expr &read);

/// The loop of the role's body that carries a value from turn to turn: over tiles of query rows.
std::optional<LoopOp<>> turnsOf(Role &role);
std::optional<LoopOp<const Op>> turnsOf(const Role &role);
/// The last loop of the block itself; those that a loop over tiles was split into end with it.
Op *lastLoop(Block &block);

/// Which keys rows [rowBegin, rowBegin + rows) see.
MaskBounds boundsOf(const Kernel &kernel, ConstMask mask, const Expr &rowBegin, int64_t rows);
/// The value of an expression of numbers, of the kernel's constants and of the device library's; nothing where it names
/// anything else.
std::optional<int64_t> constantOf(const Kernel &kernel, const Expr &expr);
/// How many it says; asserts that the expression has such a value.
Count countOf(const Kernel &kernel, const Expr &written);
/// How many rows and columns of scores the warps of the role mask together.
struct TileShape {
  int64_t rows, columns;
};
TileShape scoresOf(const Kernel &kernel, const Role &role, ConstMask mask);
/// How many rows and columns the op reaches of an operand in global memory: those of the tile on the other side, of
/// which fragments are a warp's, and what warps that share keys leave has the rows once for each of them.
TileShape reachOf(const Kernel &kernel, const Role &role, const Op &op, const Operand &global);
/// How many keys a tile has, as the mask says where its own begin: n of `tile * n`. Null where it says no such thing.
Expr keysOf(const Kernel &kernel, ConstMask mask);
/// Whole key tiles inside the bounds, never negative: those that all of the rows see whole, those that some row sees.
Expr tilesSeenWhole(const MaskBounds &bounds, const Expr &keys);
Expr tilesSeen(const MaskBounds &bounds, const Expr &keys);

/// The last mask of the role; nothing where it has none.
std::optional<ConstMask> findMask(const Block &block);

} // namespace fagen::ir

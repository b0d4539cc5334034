// fagen: the IR: programs, kernels, buffers, rings, roles and ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A Program is a list of kernels: the first is the one that multiplies, those after it are launched in order, but for
// one whose grid is key_tiles, which is launched before all. A Kernel is buffers, named run-time values (lets), and,
// for each role, a body of ops. An op stands for what all threads of its role do together at one point: its operands
// say which buffers it reads and writes, at which ring position; Analysis/Access.h knows which thread touches which
// bytes. Ops are at the grain at which ordering matters: everything that touches shared memory or synchronises is an
// op.
//
// Textual form (.fair), printed by print() and read by parseProgram(); // starts a comment:
//
//   program @l4_fp16_prefill_f16_d64_none {
//     kernel @fagen_l4_fp16_prefill_f16_d64_none_sm_89 target sm_89 backend mma_sync threads 128 phase placed shared
//     49152 {
//       about "Kernel l4_fp16_prefill_f16_d64_none (l4_fp16.fa:4), target sm_89, schedule prefill (l4_fp16.fa:16)."
//       const kTileRows = 128 origin "tile" loc("l4_fp16.fa":17:16)
//       options {refill = late loc("l4_fp16.fa":24:5), barriers = minimal}
//       grid persistent
//       size K, M in [1, 65536], N
//       global %gk : f16[batch, kv_heads, seq_kv, 64] param k strided
//       global %ga : f16[M, K] param a
//       param window : i32 in [1, 4096]
//       param cap : f32
//       param %slope : f32[heads]
//       param %doc : i32[batch, seq_kv] in [0, 1000]
//       scratch %sights : i32[1, heads, 4, 4]
//       global %first : u32[B + 1] param first in [0, 1000] ascending constant
//       view %a_of : f16[M, K] = (r, c) -> %ga[r, c]
//       view %page[j] : f16[64, K] = (r, c) -> %ga[%first[j] + r, c]
//       global %parts : f32[rows x 66]
//       view %k_of : f16[seq_kv, 64] = (row, column) -> %gk[batch_index, kv_head, row, column]
//       shared %k : f16[kTileKeys x kHeadDimQK] stages kStages swizzle xor offset 16384 loc("l4_fp16.fa":21:16)
//       shared %v : f16[64 x 64] stages 2 guard full %v_full by bytes, empty %v_empty by warp
//       fragment %s : f32[32 x 64]
//       let key_tiles = ceil_div(min(seq_kv, row_begin + 128 + seq_kv - seq_q), 64) note("split-mask-loops: ...")
//       site 1 "copy_wait 2" covers "RAW k: copy_issue -> mma"
//       role all warps 0 to 4 registers 168 {
//         copy_issue %k[0], %k_of {kind = "cp_async", row = 0} loc("l4_fp16.fa":20:16)
//         loop j = 0 to key_tiles name "edge" about "tiles that some rows see in part" {
//           copy_wait {pending = 2} site 1 note("pipeline-loads: K(j) has arrived")
//           mma %s, %q, %k[j] {form = "abt", accumulate = 0}
//           if j > 0 {
//             barrier {scope = "cta"} site 2
//           }
//         }
//       }
//     }
//   }
//
// An absent optional operand is `none`, or is left out at the end.
#pragma once

#include "fagen/IR/Count.h"
#include "fagen/IR/CtaGrid.h"
#include "fagen/IR/Expr.h"
#include "fagen/IR/ExprAnalysis.h"
#include "fagen/IR/OpEnums.h" // generated from Ops.td: the enumerations of attributes
#include "fagen/IR/Ops.h"     // generated from Ops.td: enum class OpKind, OpInfo, opInfo()
#include "fagen/IR/Options.h"
#include "fagen/Support/Location.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace fagen {
class Diagnostics;
}

namespace fagen::ir {

enum class Space : uint8_t { Global, Shared, Fragment };
enum class ElementType : uint8_t { F16, BF16, E4M3, E5M2, F32, U32, MBarrier, I32, U8, Bit };
/// How rows and columns of a shared buffer map to bytes: device::Swizzle of device/tile/layout.h, shared with the
/// kernels, by the same numbers.
enum class Layout : uint8_t { RowMajor, Xor, Padded };

unsigned sizeOf(ElementType type); ///< of a bit that of a word, which has 32 of them

struct Buffer;

/// The mbarriers that order who fills a buffer's slots and who uses them. Several buffers may share them.
struct Guard {
  Buffer *full = nullptr;        ///< its phase p is complete when position p is filled
  std::optional<Actor> filledBy; ///< who arrives there; none: the bytes of bulk copies complete the phase
  Buffer *empty = nullptr;       ///< its phase p is complete when position p - lag is left; null where nobody asks
  Actor leftBy = Actor::Group;   ///< who arrives there
  unsigned lag = 0;
};

/// Which element of another global buffer element (row, column) of a view is. Only the last index, and with a factor of
/// 1, depends on the column: a row's elements lie side by side.
struct AddressMap {
  Buffer *base = nullptr;
  std::string index;       ///< what shape and `at` call the position that ops give it; empty where they give none
  std::string row, column; ///< what `at` calls them; a view of one dimension has rows of one element, and no column
  llvm::SmallVector<Expr, 4> at; ///< an index for each dimension of base
};

/// Memory or registers that ops name. Shape is rows x columns of one stage; a global buffer's rows are its length.
struct Buffer {
  std::string name;
  Space space = Space::Shared;
  ElementType type = ElementType::F16;
  Count rows = 0, columns = 0;
  bool isRing = false; ///< ops name a position; slot = position mod stages
  Count stages = 1;    ///< slots of a ring; 1 for others
  std::string param;   ///< global: the tensor's name among the kernel's parameters; empty: a part of the workspace
  /// Global, of a tensor among the parameters: its dimensions, the last dense. Without a parameter: one of the
  /// workspace, which a launch before writes and each dimension of which is dense.
  llvm::SmallVector<Expr, 4> shape;
  bool isStrided = false;         ///< of those: parameters say how far elements are apart; else each dimension is dense
  std::optional<Interval> values; ///< of integers that expressions read: what the caller promises, where he does
  bool isAscending = false;       ///< likewise: along the last dimension no value is below the one before it
  bool isDistinct = false;        ///< likewise: no two elements are the same
  bool arePlaces = false;         ///< and each is below how many there are
  bool isConstant = false;        ///< likewise: nobody writes it while a launch that reads it runs
  std::optional<AddressMap> map;  ///< of a view
  Layout layout = Layout::RowMajor;
  std::optional<uint64_t> offset; ///< bytes from the start of shared memory, once allocate-shared has run
  Buffer *overlays = nullptr;     ///< whose bytes this one reuses, if any (set before allocation)
  std::optional<Guard> guard;
  /// Fragment: lane t of a quad has columns 4t to 4t + 3 of each 16, as tiles of bytes give them (ops/widen.h); else
  /// pairs 2t, 2t + 1 and 2t + 8, 2t + 9.
  bool isInQuads = false;
  /// Of e4m3: of each 16 columns those of each lane's pairs stand together, 0, 1, 8, 9, then 2, 3, 10, 11, and so on.
  /// The conversion of an accumulator leaves them so without an exchange between lanes. Sums over columns are the same
  /// if both operands have this order.
  bool isPaired = false;
  Location location;

  uint64_t stageBytes() const; ///< with the gaps of its layout
  uint64_t bytes() const { return stageBytes() * stages; }
};

/// A buffer as an op uses it: for rings, and views with an index, at a position.
struct Operand {
  Buffer *buffer = nullptr;
  Expr position; ///< null for other buffers
};

using Attribute = std::variant<int64_t, std::string, Expr>;

struct Op;
using Ops = std::vector<std::unique_ptr<Op>>;
struct Block {
  Ops ops;
};

/// One op. What operands and attributes a kind has stands in Ops.td; the verifier checks it. fagen/IR/OpClasses.h has a
/// class for each kind, with accessors by name and type.
struct Op {
  OpKind kind;
  llvm::SmallVector<Operand, 4> operands; ///< in the order of OpInfo::operands; absent optional ones have no buffer
  std::map<Attr, Attribute> attributes;   ///< those of OpInfo::attributes that are there
  Block body;                             ///< of loop and if
  Location location;                      ///< the spec line that it comes from
  std::string note;                       ///< compiler-made: "pass: reason"; printed above the emitted lines
  unsigned site = 0;                      ///< of barriers and waits: its number in the ledger, from 1

  explicit Op(OpKind kind) : kind(kind) {}
  /// Of any kind of op that has it; they assert that the op does.
  int64_t integer(Attr attribute) const;
  llvm::StringRef text(Attr attribute) const;
  const Expr &expr(Attr attribute) const;
  bool has(Attr attribute) const { return attributes.count(attribute) != 0; }
  /// Whether the optional attribute of 0 and 1 is there and 1.
  bool isSet(Attr attribute) const { return has(attribute) && integer(attribute) != 0; }
  void set(Attr attribute, Attribute value) { attributes[attribute] = std::move(value); }
};

/// A named constant of the generated kernel, and where its value comes from.
struct Constant {
  std::string name; ///< kTileRows
  int64_t value = 0;
  std::string origin; ///< the key it comes from: "tile"; or how it follows from others: "= kTileRows / kRowWarps"
  Location location;
};

/// An element of a global buffer that lets are read from.
struct GlobalElement {
  Buffer *buffer = nullptr;
  llvm::SmallVector<Expr, 4> at;
  int64_t low = 0, high = 0; ///< what the caller promises of its value
};

/// A number that the caller gives in addition to attention's parameters, or to the sizes of a program.
struct Scalar {
  std::string name;
  bool isReal = false;       ///< f32; else i32
  int64_t low = 0, high = 0; ///< what an i32 may be
};

/// Key tiles of a range, judged when the kernel runs: by runs of as many tiles that there are no more than a word has
/// bits. A run is seen if some row may see one of its keys.
struct TileJudgement {
  Expr first, tiles;     ///< the range
  std::string low, high; ///< how the conditions call the first and the last key of a run
  Expr seen, whole;      ///< whether some row may see one of these keys; whether every row sees them all
};

/// A run-time value computed once per CTA, before the body: loop bounds, first rows.
struct Let {
  std::string name;
  Expr value; ///< of one that is read from memory: its own name
  std::string note;
  std::optional<GlobalElement> source = {}; ///< where it is read
  std::optional<TileJudgement> judged = {}; ///< of one that stands for a judgement: its value is its own name
};

/// How the warps of a role divide a tile: warp w has rows w % rows and columns w / rows.
struct WarpGrid {
  unsigned rows = 1, columns = 1;
};

/// Which warps run a body.
struct Role {
  std::string name;
  unsigned firstWarp = 0, warps = 0;
  Block body;
  std::optional<WarpGrid> grid = {}; ///< where it does not say, the kernel's constants do
  unsigned registers = 0; ///< that each of its threads asks for when it begins; 0: keeps what the launch gave
};

/// How far lowering has come. Passes state what they need and leave; the verifier checks what each phase promises.
enum class Phase : uint8_t { Built, Split, Pipelined, LaidOut, Allocated, Placed, Verified };

struct LedgerEntry {
  unsigned site = 0;
  std::string what;   ///< "barrier", "copy_wait 2"
  std::string covers; ///< "RAW k: copy_issue -> mma S; WAR v: mma O -> copy_issue"
};

/// As many of anything as callers may have (fagen.h).
inline constexpr int64_t kMostOfSize = 1000000000;

struct Kernel {
  std::string symbol;
  std::string target;  ///< sm_89
  std::string backend; ///< scalar | wmma | mma_sync | wgmma
  unsigned threads = 0;
  Phase phase = Phase::Built;
  std::vector<std::string> about; ///< what the head of its text says of it, a line each
  Options options;
  CtaGrid grid;                               ///< of its launch
  std::vector<Scalar> scalars;                ///< numbers of the caller's
  std::vector<std::string> sizes;             ///< parameters that shapes, the grid and lets are written in
  std::map<std::string, Interval> sizeRanges; ///< of those that say what they may be
  std::vector<Constant> constants;
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<Let> lets;
  std::vector<Role> roles;
  std::vector<LedgerEntry> ledger; ///< filled by place-barriers
  uint64_t sharedBytes = 0;        ///< filled by allocate-shared
  Location location;

  Buffer *buffer(llvm::StringRef name) const; ///< null when there is none
  /// `wanted`, or where something of the kernel or of the run time has that name, `wanted` and a number.
  std::string freshName(llvm::StringRef wanted) const;
  /// Whether rows are those of all query heads of a K/V head: row query * heads_per_kv + head.
  bool packsHeads() const;
  /// Whether it declares sizes or indices of its grid. Its parameters are these sizes and its global buffers then;
  /// those of other kernels are attention's (fagen/device/params.h), and so are their run-time values.
  bool hasOwnParams() const { return !sizes.empty() || !grid.indices.empty(); }
  /// What a size may be: what it says, else 0 to 10^9.
  Interval rangeOfSize(llvm::StringRef size) const;
  /// The tensors that expressions read next to attention's, which ops and views name, in the order of the kernel's
  /// argument, after its scalars.
  std::vector<const Buffer *> readTensors() const;
  /// The tensor of the workspace that one launch of the program writes and another reads; null where there is none.
  const Buffer *scratchTensor() const;
  Buffer &addBuffer(Buffer buffer);
  int64_t constant(llvm::StringRef name) const; ///< asserts that it exists
  bool hasConstant(llvm::StringRef name) const;
  /// What was added, by its name.
  Count addConstant(llvm::StringRef name, int64_t value, llvm::StringRef origin, const Location &location = {});
};

struct Program {
  std::string name;
  std::vector<std::unique_ptr<Kernel>> kernels;
};

/// Appends ops to a block; the location sticks until it is changed.
class Builder {
public:
  explicit Builder(Block &block) : block(&block) {}
  void setLocation(const Location &location) { this->location = location; }
  /// The op, which takes the location of the builder.
  Op &add(std::unique_ptr<Op> op);
  /// Runs `fill` with the builder inside the op's body.
  Op &loop(llvm::StringRef variable, Expr begin, Expr end, llvm::function_ref<void()> fill);
  Op &branch(Expr condition, llvm::function_ref<void()> fill);

private:
  Op &nest(Op &op, llvm::function_ref<void()> fill);

  Block *block;
  Location location;
};

/// Calls `visit` for every op of a block, outer ops before the ones in their bodies, in program order.
void walk(const Block &block, llvm::function_ref<void(const Op &)> visit);
void walk(Block &block, llvm::function_ref<void(Op &)> visit);

/// Calls `visit` with each expression of the op itself: positions and attributes.
void forEachExpr(Op &op, llvm::function_ref<void(Expr &)> visit);
void forEachExpr(const Op &op, llvm::function_ref<void(const Expr &)> visit);

/// A copy with its body, without its site: what stands in two places shares no op.
std::unique_ptr<Op> clone(const Op &op);

/// Puts `value` in the place of the variable, in all expressions of the op and its body.
void substitute(Op &op, llvm::StringRef variable, const Expr &value);

/// Inserts the ops before `at`; gives the place of the first.
Ops::iterator insert(Ops &ops, Ops::iterator at, Ops added);

/// Rebuilds a block, bodies first: `place` appends to the new ops what is to stand there for the op it is given.
void rewrite(Block &block, llvm::function_ref<void(std::unique_ptr<Op>, Ops &)> place);

/// The textual form. Printing what was parsed gives the same text.
void print(const Program &program, llvm::raw_ostream &os);
void print(const Kernel &kernel, llvm::raw_ostream &os);
void print(const Op &op, llvm::raw_ostream &os, unsigned indent = 0);
/// What the kernel does, and no more: without its symbol and phase, the ledger, sites, places in files, notes, origins.
void printBare(const Kernel &kernel, llvm::raw_ostream &os);

/// Reads a buffer of the SourceMgr. Null after an error; every error has been reported with its place.
std::unique_ptr<Program> parseProgram(unsigned buffer, Diagnostics &diags);

} // namespace fagen::ir

// fagen: one emit function an op.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "RowKeys.h"
#include "fagen/Analysis/Timeline.h"
#include "fagen/Emit/Plan.h"
#include "fagen/IR/Measures.h"
#include "fagen/IR/RunValues.h"
#include "fagen/IR/Settling.h"
#include "fagen/IR/TextNames.h"
#include "fagen/IR/Views.h"
#include "fagen/Support/IndentedStream.h"
#include "form/Divisors.h"
#include "form/KeyRuns.h"

#include "fmt/format.h"

#include <fagen/device/trace.h>

namespace fagen {

/// One line of text: fmt's format and arguments.
template <class... Args> void line(IndentedStream &out, fmt::format_string<Args...> format, Args &&...args) {
  out << fmt::format(format, std::forward<Args>(args)...) << '\n';
}

/// A line that begins a block, which ends with the object, by `tail`.
class Braces {
public:
  template <class... Args>
  Braces(IndentedStream &out, llvm::StringRef tail, fmt::format_string<Args...> head, Args &&...args)
      : out(out), tail(tail) {
    line(out, head, std::forward<Args>(args)...);
    out.indent();
  }
  ~Braces() {
    out.unindent();
    out << tail << '\n';
  }
  Braces(const Braces &) = delete;

private:
  IndentedStream &out;
  const llvm::StringRef tail;
};

/// Neighbouring ops that one function of the library does together, or one op that has a function of its own.
struct Composition {
  size_t count = 1;
  const ir::Op *subject = nullptr; ///< which says most of it
  const ir::Op *later = nullptr;   ///< which it does, too, though others stand between
  std::optional<ir::Settling> settling = {};
  std::optional<ir::Rescaling> rescaling = {};
  std::optional<ir::OutputRescaling> output = {};
  std::optional<ir::Beginning> beginning = {};
  bool beginsRing = false; ///< the subject and its like begin the mbarriers of all slots
  llvm::SmallVector<const ir::Buffer *, 5> registers = {}; ///< and other buffers that its call names; some may be null

  bool isSingle() const { return !settling && !rescaling && !output && !beginning && !beginsRing; }
};
/// That with which these ops begin.
Composition compositionOf(llvm::ArrayRef<const ir::Op *> ops);
/// The parts of a step whose settling is rare. Warps of a group part at the vote. So what the group does as one, its
/// wait for products, stands in `together`, which each step has; what comes before that after the vote, in `settled`,
/// and what follows in `rest`, twice.
struct StepApart {
  ir::Settling settling;
  const ir::Op *alpha; ///< makes the factors 1
  llvm::SmallVector<const ir::Op *, 16> terms, settled, together, rest;
  const ir::Op *output; ///< which the rest ends with, where the step was settled
};
/// Nothing where the loop has no such step, or waits for products in its rest.
std::optional<StepApart> asStepApart(const ir::Op &loop);
/// Whether a loop has at most one turn in each group of the role, as far as bounds and lets tell.
bool runsAtMostOnce(const ir::Kernel &kernel, const ir::Role &role, ir::LoopOp<const ir::Op> loop);
/// Calls `visit` with what the text has functions for, in program order, bodies of loops and branches included.
void forEachComposition(const ir::Block &block, llvm::function_ref<void(const Composition &)> visit);

/// What a loop is about, or its name.
inline std::string aboutOf(ir::LoopOp<const ir::Op> loop) {
  return (loop.about().empty() ? loop.name() : loop.about()).str();
}
/// `for (int j = begin; j < end; ++j)`, or `if (const int j = begin; ...)` where the bounds or the caller say that it
/// runs at most once.
std::string loopHead(ir::LoopOp<const ir::Op> loop, bool runsAtMostOnce,
                     llvm::function_ref<std::string(const ir::Expr &)> spell);

/// " // why": the end of the line of a short call, of which a step has many; empty where the op has no note.
inline std::string noteAfter(const ir::Op &op) { return op.note.empty() ? "" : " // " + op.note; }

/// Whether it is a map or a vote that the library has no function for: a lambda says what elements become or must pass.
bool isOfElements(const ir::Op &op);
/// The keys of each row where a mask is emitted by these.
std::optional<KeysOfRow> maskByKeys(const ir::Kernel &kernel, const ir::Expr &visible);
/// The mask's condition where a fragment is masked by runs of keys: where it reads an element for each row and key.
std::optional<ConditionByRuns> maskByRuns(const ir::Kernel &kernel, const ir::Expr &visible);
/// Of a view the index of row 0 in that dimension of the tensor.
ir::Expr firstOf(const ir::Matrix &matrix, unsigned dimension);
/// The CTAs of a cluster, by the option's name where the kernel has it.
std::string clusterOf(const ir::Kernel &kernel);
/// ", ptx::CacheHint::kEvictFirst", or nothing.
std::string cacheHintOf(ir::CopyIssueOp<const ir::Op> copy);
/// A ring that copies fill with rows of K/V heads alone, which attention's text keeps together.
bool isOfKeys(const ir::Kernel &kernel, const ir::Buffer &ring);
/// What a lambda calls elements of the buffer.
std::string parameterFor(const ir::Buffer &buffer, const ir::Expr &value);
/// An f32 as the text of kernels spells it.
std::string spellReal(float value);

/// What the m of a result is counted in: its factors to nats and to exponents of two, and what says so to templates.
struct UnitText {
  const char *toNats, *toExponents, *argument;
};
UnitText unitOf(const ir::Op &op);

/// Run-time values as generated text reaches them: members of what holds those of their scope, by themselves where it
/// is empty. A division by a Divisor names its reciprocal.
/// Calls that the device library has other names for than the IR: divisions of what may be negative or by what has a
/// reciprocal, and reads. The form and reciprocals are members of `holder`, "cta." or nothing. `spell` is for operands.
ir::Expr spellCalls(const ir::Kernel &kernel, const TileDivisors &divisors, const ir::Expr &expr,
                    llvm::StringRef holder, llvm::function_ref<std::string(const ir::Expr &)> spell);

ir::Expr spellRunValues(const ir::Expr &expr, llvm::function_ref<llvm::StringRef(ir::RunScope)> holderOf);

/// Writes ops as calls of the device library. Inside a generated function `cta` holds what is the CTA's, `r` what a
/// thread keeps in registers; in the epilogue `place` says which rows the CTA has. `places` gets each op's line.
class OpEmitter {
public:
  /// The name of `role`, where there is one, stands before that of each op.
  OpEmitter(const ir::Kernel &kernel, const TileDivisors &divisors, const Points &points, IndentedStream &out,
            std::vector<OpPlan> &places, const ir::Role *role = nullptr)
      : kernel(kernel), divisors(divisors), out(out), points(points), places(places), role(role) {}

  virtual ~OpEmitter() = default;

  virtual void emitBlock(llvm::ArrayRef<const ir::Op *> ops);
  /// A loop over steps that settle apart, from `begin`, a declaration or nothing, to `end`.
  void emitStepsApart(const StepApart &step, const std::string &variable, const std::string &begin,
                      const std::string &end);
  /// The clock that an instrumented function has, and the parameters of the launch, as it spells them.
  struct ClockNames {
    std::string name = "r.clock", params = "cta.params";
  };
  /// Every stage of a block tells its end.
  void markStages() { marks = Marks::Stages; }
  void markStages(ClockNames names) {
    clockNames = std::move(names);
    markStages();
  }
  /// The ops are a step of a sampled loop.
  void sampleStages() { marks = Marks::Samples; }
  /// In the epilogue rows and tensors are located anew, so that nothing of them lives across the loop.
  void enterEpilogue() { inEpilogue = true; }

  /// "cta.shared.ring.k[(j + 1) % kStages]", "r.s".
  std::string operand(const ir::Operand &operand) const;
  /// The expression with run-time values spelled as the generated function reaches them.
  virtual std::string expression(const ir::Expr &expr) const;
  /// The number of the tile that goes with a ticket.
  std::string tileOf(const char *ticket, const char *params) const;

protected:
  /// Where a kernel with parameters of its own writes the op otherwise: writes it, and says so.
  virtual bool emitOwn(const ir::Op &) { return false; }
  virtual bool isInKvRing(const ir::Buffer &ring) const { return isOfKeys(kernel, ring); }
  virtual void emitCopy(ir::CopyIssueOp<const ir::Op> copy);
  virtual void emitBulkCopy(ir::CopyIssueOp<const ir::Op> copy);
  /// Elements of tensors, as the text calls their type.
  virtual std::string elementType(ir::ElementType) const { return "Element"; }
  ir::Expr memberOfCta(const ir::Expr &node) const;
  /// "place.batch, place.head": of the first row of the view that the op names.
  std::string headOf(const ir::Op &op) const;
  /// A measure's constant where the text has it, else the number.
  std::string nameOr(ir::Measure measure, int64_t number) const;
  /// What a reader wants to know before the line: the maths for ops that have some.
  virtual std::string heading(const ir::Op &op) const;
  /// "cta.shared.k_full, j": an mbarrier and a position.
  std::string mbarrier(const ir::Operand &operand) const;
  /// `head { ... }`
  void inBraces(const std::string &head, llvm::function_ref<void()> body);
  /// The next line has the op's call; for ops whose first line has not.
  void callStandsHere() { places.back().line = out.getLine(); }

  /// A real expression as the lambda of a map computes it.
  std::string element(const ir::Op &op, const ir::Expr &value) const;

  /// The stage of the ops before is over.
  void emitMark(device::Stage stage, bool isBeforeWait);

  enum class Marks : uint8_t { None, Stages, Samples };
  Marks marks = Marks::None; ///< what blocks tell
  const ir::Kernel &kernel;
  const TileDivisors &divisors;
  IndentedStream &out;

private:
  /// With its comment, and its place among the lines; those that are done with it are counted, too.
  size_t emitOps(llvm::ArrayRef<const ir::Op *> ops);
  void emit(const ir::Op &op);
  void comment(const ir::Op &op);
  void emitCopyIssue(const ir::Op &op);
  void emitMma(const ir::Op &op);
  void emitArrive(const ir::Op &op);
  void emitRingInit(const ir::Op &op);
  std::string arrivalsAt(const ir::MbarrierInitOp<const ir::Op> &init) const;
  std::string bytesAt(const ir::ArriveOp<const ir::Op> &arrive) const;
  void emitSlotInit(const ir::Op &op);
  void emitTurn(const ir::Op &op);
  void emitFence(const ir::Op &op);
  void emitHandover(const ir::Op &op);
  void emitLoop(const ir::Op &op);
  void emitMap(const ir::Op &op);
  void emitMask(const ir::Op &op, const ir::Expr &visible);
  void emitMaskOfKeys(const ir::Op &op, const KeysOfRow &keys);
  void emitMaskOfElements(const ir::Op &op, const ir::Expr &visible);
  void emitMaskOfRuns(const ir::Op &op, const ConditionByRuns &visible);
  void emitSeenKeys(const ir::Op &op, const ConditionByRuns &visible, const std::string &call);
  void readAhead(llvm::ArrayRef<const ir::Op *> ops);
  bool isSeenAhead(const ir::Op &op) const;
  void emitReduce(const ir::Op &op);
  void emitComposition(const Composition &composition);
  void emitSettled(const StepApart &step);
  void emitRescaling(const ir::Rescaling &rescaling);
  void emitOutputRescaling(const ir::OutputRescaling &rescaling);
  void emitVote(const ir::Op &op);
  void emitSettling(const ir::Settling &settling);
  void emitScoresAgain(const ir::Settling &settling, const std::string &call, bool alwaysMasks);
  void addPlace(const ir::Op &op);
  void emitPowers(const ir::Op &op);
  void emitElements(const ir::Op &op);
  void emitWhen(const ir::Op &op, llvm::function_ref<void()> emit);
  std::string cornerOf(const ir::Op &op) const;
  void emitConvert(const ir::Op &op);
  void emitStorePartial(const ir::Op &op);
  void emitStoreMerged(const ir::Op &op);
  void emitStore(const ir::Op &op);
  void emitStoreLse(const ir::Op &op);
  void emitBulkStore(const ir::Op &op);
  void emitStoreSplit(const ir::Op &op);
  void emitCombineLast(const ir::Op &op);
  void emitBarrier(const ir::Op &op);
  const char *rowsOfO() const;
  const char *rowsOfLse() const;
  struct OfRow {
    std::string text;
    bool usesRow;
  };
  OfRow boundOfRow(const ir::Op &op, const ir::Expr &bound, llvm::ArrayRef<ir::Expr> searched, const char *join) const;
  const char *rowsOfParts() const;
  const Points &points;
  std::vector<OpPlan> &places;
  const ir::Role *const role;
  ClockNames clockNames;
  bool inEpilogue = false;
  const ir::Op *doneBefore = nullptr; ///< by the composition before it
  const ir::Op *seenAhead = nullptr;  ///< the mask of this function whose elements have been read
  bool knowsRedone = false;           ///< settle_rows of this step has said whether it did the step again
};

} // namespace fagen

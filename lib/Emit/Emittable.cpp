// fagen: which programs have a text: what emission needs beyond what the verifier asks.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Emit/Emittable.h"

#include "KernelEmitter.h"
#include "ProgramOps.h"
#include "check/OperandsInText.h"

#include "fagen/IR/Queries.h"
#include "fagen/IR/Views.h"
#include "fagen/Support/Suggest.h"
#include "fagen/Target/MmaInstrs.h"
#include "fagen/Target/Target.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"

using namespace fagen;
using namespace fagen::ir;
using llvm::Twine;

namespace {

/// The tensors among attention's published parameters (fagen/device/params.h).
struct TensorParam {
  llvm::StringLiteral name;
  bool isWritten, hasSums; ///< by the kernel; an element a row
  RunValue heads, rows;
};
constexpr TensorParam kTensors[] = {{"q", false, false, RunValue::Heads, RunValue::SeqQ},
                                    {"k", false, false, RunValue::KvHeads, RunValue::SeqKv},
                                    {"v", false, false, RunValue::KvHeads, RunValue::SeqKv},
                                    {"o", true, false, RunValue::Heads, RunValue::SeqQ},
                                    {"lse", true, true, RunValue::Heads, RunValue::SeqQ}};
/// What the text of a kernel with attention's parameters names.
constexpr Measure kMeasuresOfText[] = {Measure::TileRows, Measure::TileKeys, Measure::HeadDimQK, Measure::HeadDimV,
                                       Measure::Stages,   Measure::Warps,    Measure::Threads,   Measure::RowWarps,
                                       Measure::KeyWarps, Measure::WarpRows, Measure::WarpKeys,  Measure::VectorBytes};
/// What it names in addition where roles differ.
constexpr Measure kMeasuresOfRoles[] = {Measure::LoadRegisters, Measure::MathRegisters};

/// As emulator.h has it: what cannot be checked is not emitted.
constexpr unsigned kMostThreadsOfCluster = 1024;

class EmittableChecker {
public:
  EmittableChecker(const Program &program, Diagnostics &diags) : program(program), diags(diags) {}

  bool check() {
    if (takesOwnArgument(program) ? checkOwn() : checkAttention())
      for (const std::unique_ptr<Kernel> &kernel : program.kernels)
        checkLimits(*kernel);
    return isSound;
  }

private:
  bool checkAttention() {
    const OtherLaunches others = otherLaunches(program);
    const size_t known = 1 + (others.combine != nullptr) + (others.classifier != nullptr);
    if (program.kernels.size() != known)
      refuse(Location(), "program @" + program.name + " has " + Twine(program.kernels.size()) +
                             " kernels; text is made of one, and at most one that just combines its splits and one "
                             "that just classifies its key tiles");
    for (const std::unique_ptr<Kernel> &kernel : program.kernels) {
      checkPhase(*kernel);
      if (kernel.get() != others.classifier)
        checkConstants(*kernel);
    }
    if (isSound)
      checkKernel(*program.kernels.front());
    if (isSound && others.classifier)
      checkClassifier(*others.classifier, *program.kernels.front());
    return isSound;
  }

  /// Kernels with parameters of their own.
  bool checkOwn() {
    for (const std::unique_ptr<Kernel> &kernel : program.kernels) {
      checkPhase(*kernel);
      checkTarget(*kernel);
      checkFamilies(*kernel);
      if (!kernel->hasOwnParams())
        refuse(kernel->location, "kernel @" + kernel->symbol +
                                     " has attention's parameters, and another kernel of the program has its own");
      else if (kernel->target != program.kernels.front()->target)
        refuse(kernel->location, "kernel @" + kernel->symbol + " is for another target than the kernel before it");
      if (!mmaFamily(kernel->backend).isCollective || !mmaFamily(kernel->backend).keepsResults)
        refuse(kernel->location, "products by " + kernel->backend + " have no text in kernel @" + kernel->symbol +
                                     "; those by " + familiesWithOwnText() + " have");
      for (const std::unique_ptr<Buffer> &buffer : kernel->buffers)
        if (buffer->overlays && !endsWithRings(*kernel, *buffer))
          refuse(buffer->location,
                 "%" + buffer->name + " overlays %" + buffer->overlays->name +
                     "; that has text here where all that overlay others begin with one ring, and only "
                     "rings lie from there on");
      for (const Role &role : kernel->roles)
        checkOwnRole(*kernel, role);
    }
    return isSound;
  }

  /// Whether all that lies from where the buffer begins is rings, and what overlays them does so from there on.
  static bool endsWithRings(const Kernel &kernel, const Buffer &buffer) {
    return llvm::all_of(kernel.buffers, [&](const auto &other) {
      const bool isBefore = other->space != Space::Shared || *other->offset < *buffer.overlays->offset;
      return isBefore || (other->overlays ? other->overlays == buffer.overlays : isOverlain(kernel, *other));
    });
  }

  static std::string familiesWithOwnText() {
    std::vector<llvm::StringRef> names;
    for (const MmaFamilyInfo &family : allMmaFamilies())
      if (family.isCollective && family.keepsResults)
        names.push_back(toString(family.family));
    return llvm::join(names, " and ");
  }

  void checkOwnRole(const Kernel &kernel, const Role &role) {
    walk(role.body, [&](const Op &op) {
      if (!hasOwnText(op))
        refuse(op.location, opInfo(op.kind).name + " has no text in a kernel with parameters of its own");
      else if (op.kind == OpKind::Loop && countTickets(op.body) != 0 && !isByFirstThread(op))
        refuse(op.location, "role " + role.name +
                                " draws tiles by its first thread, and does other things by all its "
                                "threads, which do not learn what it drew");
      else if (const auto copy = dynCast<CopyIssueOp>(op); copy && !isBulkCopy(op) && role.firstWarp != 0)
        refuse(op.location, "copies by threads begin with thread 0 of the CTA; role " + role.name +
                                " begins with warp " + Twine(role.firstWarp));
      else if (op.kind == OpKind::AwaitLaunches && &op != role.body.ops.front().get())
        refuse(op.location, "await_launches has text as the first op of a role, before its lets; role " + role.name +
                                " begins with another");
      else if (isMergeOfWarps(op) && role.firstWarp != 0)
        refuse(op.location, opInfo(op.kind).name + " counts warps from warp 0 of the CTA; role " + role.name +
                                " begins with warp " + Twine(role.firstWarp));
      else if (op.kind == OpKind::Store && warpGridOf(kernel, role).columns != 1)
        refuse(op.location, "a store takes accumulators of whole rows; warps of role " + role.name + " divide columns");
    });
    if (isSound) // else operands may be of other kernels' kinds
      checkOperands(kernel, role);
    checkTiles(kernel, role);
  }

  /// CTAs that take several tiles know which one inside of the loop over them alone.
  void checkTiles(const Kernel &kernel, const Role &role) {
    if (!kernel.grid.isPersistent)
      return;
    const llvm::StringSet<> ofTiles = namesOfTiles(kernel);
    auto check = [&](const Op &op) {
      bool namesTile = false;
      forEachExprInText(op, [&](const Expr &expr) { namesTile |= usesAny(expr, ofTiles); });
      if (namesTile)
        refuse(op.location, opInfo(op.kind).name +
                                " has no text outside of a loop over the CTA's tiles (to tiles_of_cta): "
                                "it depends on the tile, and the grid is persistent");
    };
    for (const std::unique_ptr<Op> &op : role.body.ops)
      if (!isLoopOverTiles(kernel, *op)) {
        check(*op);
        walk(op->body, check);
      }
  }

  void checkOperands(const Kernel &kernel, const Role &role) {
    llvm::SmallPtrSet<const Op *, 32> alone;
    forEachComposition(role.body, [&](const Composition &composition) {
      if (composition.isSingle())
        alone.insert(composition.subject);
    });
    walk(role.body, [&](const Op &op) {
      const std::string why = whyNoText(kernel, role, op, alone.contains(&op));
      if (!why.empty())
        refuse(op.location, opInfo(op.kind).name + " has no text: " + why);
    });
  }

  static unsigned countTickets(const Block &body) {
    unsigned found = 0;
    walk(body, [&](const Op &op) { found += op.kind == OpKind::FetchTile; });
    return found;
  }

  static bool isMergeOfWarps(const Op &op) {
    return op.kind == OpKind::StorePartial || op.kind == OpKind::StoreMergedSplit || op.kind == OpKind::CombineLast;
  }

  static bool hasOwnText(const Op &op) {
    switch (op.kind) {
    case OpKind::StoreMerged:
    case OpKind::StoreSplit:
    case OpKind::Combine:
    case OpKind::ClassifyTiles:
    case OpKind::Place:
      return false;
    case OpKind::CopyIssue:
      return !op.isSet(Attr::Running) || (!globalOperandOf(op)->position && copiesWholeRows(op));
    default:
      return true;
    }
  }

  void refuse(const Location &location, const Twine &message) {
    diags.error(location, message);
    isSound = false;
  }

  void checkPhase(const Kernel &kernel) {
    if (kernel.phase != Phase::Verified)
      refuse(kernel.location, "kernel @" + kernel.symbol +
                                  " is not proved; text is made of kernels that verify-barriers has proved "
                                  "(--run-pass=verify-barriers)");
  }

  void checkConstants(const Kernel &kernel) {
    for (Measure measure : kMeasuresOfText)
      if (!measureOf(kernel, measure))
        refuse(kernel.location,
               "kernel @" + kernel.symbol + " has attention's parameters and no constant " + nameOf(measure));
  }

  void checkTarget(const Kernel &kernel) {
    std::vector<llvm::StringRef> known;
    for (const TargetInfo &target : allTargets())
      known.push_back(target.name);
    if (!llvm::is_contained(known, kernel.target))
      refuse(kernel.location, "kernel @" + kernel.symbol + " is for target '" + kernel.target +
                                  "'; known targets are " + alternatives(known));
    else if (!lookupTarget(kernel.target)->has(Feature::SetMaxNReg) &&
             (measureOf(kernel, Measure::MathRegisters) ||
              llvm::any_of(kernel.roles, [](const Role &role) { return role.registers != 0; })))
      refuse(kernel.location, "kernel @" + kernel.symbol + " hands registers from role to role; target '" +
                                  kernel.target + "' cannot, '" +
                                  firstTargetWith(featureBit(Feature::SetMaxNReg))->name + "' can");
  }

  /// Of a kernel that has a text else.
  void checkLimits(const Kernel &kernel) {
    const TargetInfo *const target = lookupTarget(kernel.target);
    const unsigned most = target ? target->sharedPerBlock : 0;
    if (target && kernel.sharedBytes > most)
      refuse(kernel.location, "kernel @" + kernel.symbol + " has " + Twine(kernel.sharedBytes) +
                                  " B of shared memory; a CTA on " + kernel.target + " has at most " + Twine(most) +
                                  " B: take smaller tiles or fewer stages");
    if (kernel.grid.hasClusters() && kernel.threads * kernel.grid.cluster > kMostThreadsOfCluster)
      refuse(kernel.location, "kernel @" + kernel.symbol + " has clusters of " + Twine(kernel.grid.cluster) +
                                  " CTAs with " + Twine(kernel.threads) + " threads each; a cluster has at most " +
                                  Twine(kMostThreadsOfCluster) + " threads, which the emulator runs as one");
  }

  void checkKernel(const Kernel &kernel) {
    checkTarget(kernel);
    checkFamilies(kernel);
    if (llvm::none_of(kernel.buffers, [](const auto &buffer) { return buffer->space == Space::Global; }))
      refuse(kernel.location, "kernel @" + kernel.symbol + " has no tensor in global memory; the text names its type");
    if (kernel.roles.size() > 2)
      refuse(kernel.location, "kernel @" + kernel.symbol + " has " + Twine(kernel.roles.size()) +
                                  " roles; text is made of one, or of one that loads and one that computes");
    if (kernel.roles.size() == 2 && llvm::any_of(kMeasuresOfRoles, [&](Measure of) { return measureOf(kernel, of); }))
      for (Measure measure : kMeasuresOfRoles)
        if (!measureOf(kernel, measure))
          refuse(kernel.location, "kernel @" + kernel.symbol + " has two roles and no constant " + nameOf(measure));
    if (kernel.roles.size() == 2)
      if (const Op *op = findBeyondOneThread(kernel.roles.front()))
        refuse(op->location, opInfo(op->kind).name + " in role " + kernel.roles.front().name +
                                 ", which loads by one thread: bulk copies, mbarriers and fences, and two barriers");
    checkSteps(kernel.roles.back().body);
    for (const Role &role : kernel.roles)
      walk(role.body, [&](const Op &op) { checkOp(op); });
  }

  void checkFamilies(const Kernel &kernel) {
    for (const Role &role : kernel.roles)
      forEachComposition(role.body, [&](const Composition &composition) {
        if (composition.isSingle()) // what several ops are one function of may make products in its own way
          checkFamily(kernel, *composition.subject);
        if (composition.subject->isSet(Attr::Apart) && !composition.settling)
          refuse(composition.subject->location, "a vote that is apart has text only where it settles rows as "
                                                "settle-rows leaves them; without apart = 1 it has text here");
      });
  }

  /// Products are issued and waited for just where their family is asynchronous.
  void checkFamily(const Kernel &kernel, const Op &op) {
    const bool isOfWait = op.kind == OpKind::MmaIssue || op.kind == OpKind::MmaCommit || op.kind == OpKind::MmaWait,
               isAsynchronous = mmaFamily(kernel.backend).isAsynchronous;
    const auto fence = dynCast<FenceOp>(op);
    if (isAsynchronous ? op.kind == OpKind::Mma : isOfWait || (fence && fence->kind() == FenceKind::Mma))
      refuse(op.location, opInfo(op.kind).name + " has no text in kernel @" + kernel.symbol + ": products by " +
                              kernel.backend +
                              (isAsynchronous ? " are issued by mma_issue" : " are complete after mma"));
  }

  /// The loops over key tiles, of one tile of query rows or of each, become functions.
  void checkSteps(const Block &body) {
    for (const std::unique_ptr<Op> &op : body.ops)
      if (const auto loop = dynCast<LoopOp>(std::as_const(*op)); loop && op->has(Attr::Carry))
        checkSteps(op->body);
      else if (loop && loop->name().empty())
        refuse(op->location, "a loop without a name; the function that is made of it is named after it");
  }

  void checkOp(const Op &op) {
    if (op.kind == OpKind::If || op.kind == OpKind::Combine || op.kind == OpKind::ClassifyTiles ||
        op.kind == OpKind::MergeParts || op.kind == OpKind::Transpose)
      refuse(op.location, opInfo(op.kind).name + " has no text in this kernel");
    for (const auto &[operand, info] : llvm::zip(op.operands, opInfo(op.kind).operands))
      if (operand.buffer && operand.buffer->space == Space::Global && !isOfWorkspace(op, info))
        checkTensor(op, *operand.buffer, info);
  }

  static bool isOfWorkspace(const Op &op, const OperandInfo &info) {
    return op.kind == OpKind::StoreSplit || op.kind == OpKind::StoreMergedSplit || info.effect == Effect::ReadWrite ||
           info.effect == Effect::Sync;
  }

  void checkTensor(const Op &op, const Buffer &buffer, const OperandInfo &info) {
    std::vector<llvm::StringRef> names;
    for (const TensorParam &param : kTensors) {
      if (param.isWritten != info.writes() || param.hasSums != (op.kind == OpKind::StoreLse || info.optional))
        continue;
      if (param.name == tensorOf(buffer).param)
        return checkShape(op, buffer, param);
      names.push_back(param.name);
    }
    refuse(op.location, "%" + buffer.name + " is not a tensor of attention that " + opInfo(op.kind).name +
                            " names; there its `param` is " + alternatives(names));
  }

  /// The text knows where rows of a head lie, and those of packed heads.
  static bool areRowsOfHeads(const Buffer &view, bool isWritten) {
    const AddressMap &map = *view.map;
    const Expr row = variable(map.row), perKv = variable(RunValue::HeadsPerKv), &head = map.at[1];
    const Expr firstRow = restBeside(map.at[2], map.row);
    const bool isOfHead = !head.uses(map.row) && firstRow && (!isWritten || firstRow == constant(0));
    const bool isOfPacked = map.at[2] == floorDiv(row, perKv) && head.kind() == ExprKind::Add &&
                            !head.lhs().uses(map.row) && head.rhs() == row % perKv;
    const bool isWhole = map.at.size() == 3 || map.at.back() == variable(map.column);
    return isWhole && !map.at[0].uses(map.row) && (isOfHead || isOfPacked);
  }

  /// By their published shapes.
  void checkShape(const Op &op, const Buffer &buffer, const TensorParam &param) {
    const Buffer &tensor = tensorOf(buffer);
    llvm::SmallVector<Expr, 4> shape = {variable(RunValue::Batch), variable(param.heads), variable(param.rows)};
    if (!param.hasSums && !tensor.shape.empty())
      shape.push_back(tensor.shape.back());
    if (tensor.shape != shape || !buffer.map || !areRowsOfHeads(buffer, param.isWritten))
      refuse(op.location, "%" + buffer.name + " is no view of rows of one head of %" + tensor.name + "[" +
                              nameOf(RunValue::Batch) + ", " + nameOf(param.heads) + ", " + nameOf(param.rows) +
                              (param.hasSums ? "]" : ", columns]") + ", nor of packed heads; " + opInfo(op.kind).name +
                              " has text for these");
  }

  /// It stands in the text of the kernel, whose constants it names, and takes its argument.
  void checkClassifier(const Kernel &kernel, const Kernel &main) {
    auto isSame = [](const Constant &a, const Constant &b) { return a.name == b.name && a.value == b.value; };
    for (const Constant &constant : kernel.constants)
      if (llvm::none_of(main.constants, [&](const Constant &other) { return isSame(constant, other); }))
        refuse(kernel.location, "kernel @" + kernel.symbol + " has a constant " + constant.name + " = " +
                                    Twine(constant.value) + " that @" + main.symbol + " has not");
    for (Measure measure : {Measure::TileRows, Measure::TileKeys})
      if (!measureOf(kernel, measure))
        refuse(kernel.location, "kernel @" + kernel.symbol + " has no constant " + nameOf(measure));
    auto namesOf = [](const Kernel &kernel) {
      std::vector<std::string> names;
      for (const Scalar &scalar : kernel.scalars)
        names.push_back(scalar.name);
      for (const Buffer *tensor : kernel.readTensors())
        names.push_back(tensor->name);
      return names;
    };
    if (namesOf(kernel) != namesOf(main))
      refuse(kernel.location,
             "kernel @" + kernel.symbol + " has other params than @" + main.symbol + "; both take one argument");
  }

  const Program &program;
  Diagnostics &diags;
  bool isSound = true;
};

} // namespace

/// A kernel after the first, whose one op is of that kind.
static const Kernel *findLaunch(const Program &program, OpKind kind) {
  for (const std::unique_ptr<Kernel> &kernel : llvm::drop_begin(program.kernels)) {
    const bool isAlone = kernel->roles.size() == 1 && kernel->roles.front().body.ops.size() == 1;
    if (isAlone && kernel->roles.front().body.ops.front()->kind == kind)
      return kernel.get();
  }
  return nullptr;
}

OtherLaunches fagen::otherLaunches(const Program &program) {
  if (program.kernels.empty())
    return {};
  return {findLaunch(program, OpKind::Combine), findLaunch(program, OpKind::ClassifyTiles)};
}

bool fagen::takesOwnArgument(const Program &program) {
  return llvm::any_of(program.kernels, [](const auto &kernel) { return kernel->hasOwnParams(); });
}

bool fagen::checkEmittable(const Program &program, Diagnostics &diags) {
  return EmittableChecker(program, diags).check();
}

KernelText fagen::emitProgram(const Program &program, Instrument instrument) {
  if (takesOwnArgument(program))
    return emitOwnText(program, instrument != Instrument::None);
  return emitKernel(*program.kernels.front(), instrument, otherLaunches(program));
}

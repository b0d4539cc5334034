// fagen: the IR verifier: declarations of a kernel, and what each phase promises. VerifyOps.cpp checks ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "VerifierState.h"
#include "names/NameRules.h"

#include "fagen/IR/ExprAnalysis.h"
#include "fagen/IR/ExprTypes.h"
#include "fagen/IR/LibraryConstants.h"
#include "fagen/IR/Names.h"
#include "fagen/IR/Queries.h"
#include "fagen/IR/Steering.h"
#include "fagen/IR/Views.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <set>

using namespace fagen;
using namespace fagen::ir;
using llvm::StringRef;
using llvm::Twine;

namespace {

constexpr unsigned kMaxThreads = 1024;
constexpr uint64_t kMaxBufferBytes = uint64_t(1) << 31;
/// What analyses enumerate byte by byte and slot by slot: no GPU's CTA has more, no schedule asks for more stages.
constexpr uint64_t kMaxSharedBytes = uint64_t(256) << 10;
constexpr unsigned kMaxStages = 15;
constexpr int64_t kMaxConstant = int64_t(1) << 16;

class KernelVerifier {
public:
  KernelVerifier(const Kernel &kernel, DefectHandler report) : kernel(kernel), state(kernel, report) {}

  bool run() {
    checkHead();
    checkConstants();
    verifyParams(state);
    for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
      checkBuffer(*buffer);
    checkLets();
    verifyGrid(state);
    verifyViews(state);
    checkRoles();
    for (const Role &role : kernel.roles)
      verifyOps(role, state);
    verifyLaunches(state);
    verifyRegisters(state);
    verifyDivisions(state);
    verifyNames(state);
    verifyRowValues(state);
    if (!state.defective) // else attributes may lack their types
      checkSteering();
    if (kernel.phase >= Phase::Allocated)
      checkAllocation();
    if (kernel.phase >= Phase::Placed)
      checkSites();
    return !state.defective;
  }

private:
  void checkHead() {
    if (!isIdentifier(kernel.symbol))
      state.defect(kernel.location, "the kernel's symbol '" + kernel.symbol + "' is not an identifier");
    for (StringRef text : kernel.about)
      if (!llvm::all_of(text, llvm::isPrint))
        state.defect(kernel.location, "about has characters that cannot stand in a line of the text's head");
    if (!parseMma(kernel.backend))
      state.defect(kernel.location, "unknown backend '" + kernel.backend + "'");
    if (kernel.threads == 0 || kernel.threads % 32 != 0 || kernel.threads > kMaxThreads)
      state.defect(kernel.location,
                   Twine(kernel.threads) + " threads; a CTA has a multiple of 32 up to " + Twine(kMaxThreads));
  }

  void checkConstants() {
    for (const Constant &constant : kernel.constants) {
      if (!isIdentifier(constant.name))
        state.defect(constant.location, "constant '" + constant.name + "' is not an identifier");
      if (!state.declare(constant.name))
        state.defect(constant.location, "constant '" + constant.name + "' is declared twice");
      if (libraryConstant(constant.name))
        state.defect(constant.location, "constant '" + constant.name + "' hides one of the device library");
    }
    bool areInRange = true;
    for (const MeasureInfo &info : kMeasures) {
      const std::optional<int64_t> value = measureOf(kernel, info.measure);
      if (!value || (*value > 0 && *value <= kMaxConstant))
        continue;
      state.defect(kernel.location, info.name + " is " + Twine(*value) + "; it may be 1 to " + Twine(kMaxConstant));
      areInRange = false;
    }
    if (areInRange)
      checkMeasures();
  }

  void checkMeasures() {
    const int64_t warpsOfCta = kernel.threads / 32;
    const std::optional<int64_t> threads = measureOf(kernel, Measure::Threads),
                                 warps = measureOf(kernel, Measure::Warps);
    if (threads && *threads != kernel.threads)
      state.defect(kernel.location, nameOf(Measure::Threads) + " is " + Twine(*threads) + "; the kernel's threads is " +
                                        Twine(kernel.threads));
    else if (warps && *warps > warpsOfCta)
      state.defect(kernel.location, nameOf(Measure::Warps) + " is " + Twine(*warps) + "; " + Twine(kernel.threads) +
                                        " threads are " + Twine(warpsOfCta) + " warps");
    llvm::for_each(kMeasureProducts, [this](const MeasureProduct &each) { checkProduct(each); });
  }

  void checkProduct(const MeasureProduct &each) {
    const std::optional<int64_t> product = measureOf(kernel, each.product), a = measureOf(kernel, each.a),
                                 b = measureOf(kernel, each.b);
    if (product && a && b && *product != *a * *b)
      state.defect(kernel.location, nameOf(each.product) + " is " + Twine(*product) + "; " + nameOf(each.a) + " * " +
                                        nameOf(each.b) + " is " + Twine(*a * *b));
  }

  void checkBuffer(const Buffer &buffer) {
    auto defect = [&](const Twine &message) { state.defect(buffer.location, "%" + buffer.name + ": " + message); };
    const bool isShared = buffer.space == Space::Shared;
    if (!isIdentifier(buffer.name))
      defect("the name is not an identifier");
    for (const auto &[what, count] :
         {std::pair("rows", &buffer.rows), {"columns", &buffer.columns}, {"stages", &buffer.stages}})
      if (constantOf(kernel, count->expr()) != count->number())
        defect(Twine(what) + " are written as '" + count->str() + "', which is not " + Twine(count->number()));
    const bool hasShape = !buffer.shape.empty();
    if ((buffer.columns == 0 && !hasShape) || (buffer.rows == 0 && buffer.space != Space::Global))
      defect("rows and columns are at least 1");
    if (buffer.stages == 0 || (!buffer.isRing && buffer.stages != 1))
      defect("a ring has at least one stage, another buffer just one");
    else if (buffer.stages > kMaxStages)
      defect("a ring has at most " + Twine(kMaxStages) + " stages");
    else if (uint64_t(buffer.rows) * buffer.columns > kMaxBufferBytes / sizeOf(buffer.type) / buffer.stages)
      defect("the buffer is larger than " + Twine(kMaxBufferBytes) + " B");
    else if (isShared && buffer.bytes() > kMaxSharedBytes)
      defect("a shared buffer has at most " + Twine(kMaxSharedBytes) + " B");
    if (!isShared && (buffer.isRing || buffer.layout != Layout::RowMajor || buffer.offset || buffer.overlays))
      defect("only shared buffers have stages, a swizzle, an offset or overlay others");
    if (buffer.isInQuads && (buffer.space != Space::Fragment || buffer.columns % 16 != 0))
      defect("only fragments of a multiple of 16 columns have them in quads");
    if (buffer.isPaired && (buffer.type != ElementType::E4M3 || buffer.map || (!hasShape && buffer.columns % 16 != 0)))
      defect("only tensors, tiles and fragments of e4m3, and of a multiple of 16 columns, have them paired");
    if (!buffer.param.empty() && buffer.space != Space::Global)
      defect("only global buffers are parameters");
    if (buffer.layout == Layout::Xor && (sizeOf(buffer.type) > 2 || buffer.columns * sizeOf(buffer.type) % 32 != 0))
      defect("the xor swizzle needs elements of 1 or 2 bytes and rows of a multiple of 32 bytes");
    if (buffer.type == ElementType::MBarrier && (!isShared || buffer.rows != 1 || buffer.columns != 1))
      defect("an mbarrier is a shared buffer of one row and one column");
    if (buffer.overlays)
      checkOverlay(buffer);
    if (buffer.guard)
      checkGuard(buffer);
  }

  /// A phase of an mbarrier is a position's.
  void checkGuard(const Buffer &buffer) {
    const Guard &guard = *buffer.guard;
    auto defect = [&](const Twine &message) { state.defect(buffer.location, "%" + buffer.name + ": " + message); };
    if (buffer.space != Space::Shared || buffer.type == ElementType::MBarrier)
      defect("a guard belongs to a shared buffer that is not an mbarrier");
    for (const Buffer *bar : {guard.full, guard.empty})
      if (bar && bar->type != ElementType::MBarrier)
        defect("its guard names %" + bar->name + ", which is not an mbarrier");
    if (guard.lag >= std::max(buffer.stages.number(), 1u) && guard.lag != 0)
      defect("its guard lags by " + Twine(guard.lag) + "; a buffer of " + Twine(buffer.stages) +
             " slots would wait for ever");
  }

  void checkOverlay(const Buffer &buffer) {
    const Buffer *const base = buffer.overlays;
    if (base->space != Space::Shared || base == &buffer)
      state.defect(buffer.location,
                   "%" + buffer.name + " overlays %" + base->name + ", which is not another shared buffer");
    else if (base->overlays)
      state.defect(buffer.location, "%" + buffer.name + " overlays %" + base->name + ", which itself overlays another");
  }

  /// A real number may be made of others, and be read.
  void checkReal(const Let &let, const Expr &value) {
    if (value.kind() == ExprKind::Read)
      return checkRead(let, value);
    if (value.kind() != ExprKind::Variable) {
      for (const Expr &operand : value.operands())
        checkReal(let, operand);
      return;
    }
    checkName(let, value);
  }

  /// Real numbers of a run and of params are known, too.
  void checkName(const Let &let, const Expr &value) {
    const bool isElement = value.name().starts_with("%") || usesScope(value, RunScope::Element);
    if (isElement || !isReal(kernel, value.name()))
      state.checkNames(value, kernel.location, "let " + let.name);
  }

  void checkRead(const Let &let, const Expr &read) {
    const StringRef name = read.operands().front().name();
    const Buffer *const tensor = kernel.buffer(name.drop_front());
    const bool isRead = tensor && (llvm::is_contained(kernel.readTensors(), tensor) || isOfReals(*tensor) ||
                                   (let.judged && tensor == kernel.scratchTensor()));
    if (!isRead || tensor->shape.size() != read.indices().size())
      state.defect(kernel.location, "let " + let.name + " reads '" + read.str() +
                                        "'; a tensor that is read is declared as a param, with as many dimensions");
    for (const Expr &index : read.indices())
      checkReal(let, index);
  }

  /// Its conditions name the ends of a run, and read boxes.
  void checkJudgement(const Let &let) {
    const TileJudgement &judged = *let.judged;
    auto atEnds = [&](const Expr &condition) {
      return condition.substitute(judged.low, constant(0)).substitute(judged.high, constant(0));
    };
    for (const Expr &expr : {judged.first, judged.tiles, atEnds(judged.seen), atEnds(judged.whole)})
      checkJudged(let, expr);
  }

  void checkJudged(const Let &let, const Expr &expr) {
    const bool isBox = expr.kind() == ExprKind::Lowest || expr.kind() == ExprKind::Highest;
    if (isBox && expr.operand().kind() == ExprKind::Read) {
      const llvm::ArrayRef<Expr> ends = expr.operand().indices();
      const StringRef name = expr.operand().operands().front().name().drop_front();
      if (ends.size() % 2 != 0)
        state.defect(kernel.location, "let " + let.name + " reads '" + expr.str() +
                                          "'; a box has two indices for each dimension, first all least ones");
      else
        checkRead(let, Expr::read(name, ends.take_front(ends.size() / 2)));
      for (const Expr &end : ends.drop_front(ends.size() / 2))
        checkJudged(let, end);
      return;
    }
    if (expr.kind() == ExprKind::Read)
      return checkRead(let, expr);
    if (expr.kind() == ExprKind::Variable)
      return checkName(let, expr);
    for (const Expr &operand : expr.operands())
      checkJudged(let, operand);
  }

  void checkLets() {
    for (const Let &let : kernel.lets) {
      if (!isIdentifier(let.name))
        state.defect(kernel.location, "let '" + let.name + "' is not an identifier");
      if (let.source)
        verifySource(let, state);
      else if (let.judged)
        checkJudgement(let);
      else if (let.value && isReal(kernel, let.name))
        checkReal(let, let.value);
      else if (let.value)
        state.checkNames(let.value, kernel.location, "let " + let.name);
      else
        state.defect(kernel.location, "let " + let.name + " has no value");
      const RunValueInfo *const info = findRunValue(let.name);
      const bool hides = info && state.isOfRun(*info) && info->value != RunValue::RowBegin;
      if (!state.declare(let.name) || hides)
        state.defect(kernel.location, "let " + let.name + " hides another value of that name");
    }
  }

  void checkRoles() {
    if (kernel.roles.empty())
      state.defect(kernel.location, "the kernel has no role");
    std::vector<bool> taken(kMaxThreads / 32);
    for (const Role &role : kernel.roles) {
      if (role.warps == 0 || role.firstWarp >= kernel.threads / 32 ||
          role.warps > kernel.threads / 32 - role.firstWarp) {
        state.defect(kernel.location,
                     "role " + role.name + " names warps that " + Twine(kernel.threads) + " threads do not have");
        continue;
      }
      for (unsigned warp = role.firstWarp; warp != role.firstWarp + role.warps && warp < taken.size(); ++warp) {
        if (taken[warp])
          state.defect(kernel.location, "warp " + Twine(warp) + " has two roles");
        taken[warp] = true;
      }
      if (role.grid && (role.grid->columns == 0 || role.grid->rows > role.warps ||
                        uint64_t(role.grid->rows) * role.grid->columns != role.warps))
        state.defect(kernel.location, "role " + role.name + " has a grid of " + Twine(role.grid->rows) + " x " +
                                          Twine(role.grid->columns) + " warps, but " + Twine(role.warps) + " warps");
      checkGroupsOfRows(role);
    }
  }

  /// group_row is the first row of four warps that follow each other, the last ones of the CTA.
  void checkGroupsOfRows(const Role &role) {
    const bool shareRows = role.warps % kGroupWarps == 0 && role.firstWarp + role.warps == kernel.threads / 32 &&
                           rowsOfWarp(kernel) && warpGridOf(kernel, role).rows == role.warps;
    if (!shareRows && usesAny(role, namesOfGroups(kernel)))
      state.defect(kernel.location,
                   "role " + role.name + " names " + nameOf(RunValue::GroupRow) +
                       " or a let of it, but is not the last warps of the CTA, in groups of four that divide the rows "
                       "of a tile");
  }

  /// Every analysis would refuse the kernel. The place is that of the first op that names the let beyond the limit.
  void checkSteering() {
    llvm::SmallVector<const Role *, 2> roles;
    for (const Role &role : kernel.roles)
      roles.push_back(&role);
    const SteeringLets steering = steeringLets(kernel, roles);
    if (steering.lets.size() <= kMaxSteering)
      return;
    const StringRef last = steering.lets[kMaxSteering]->name;
    const Op *place = nullptr;
    for (const Role &role : kernel.roles)
      walk(role.body, [&](const Op &op) {
        forEachSteering(op, [&](const Expr &expr) { place = !place && expr.uses(last) ? &op : place; });
      });
    std::string names;
    for (const Let *let : steering.lets)
      names += (names.empty() ? "" : ", ") + let->name;
    state.defect(place ? place->location : kernel.location,
                 Twine(steering.lets.size()) + " run-time values steer loops, conditions and positions: " + names +
                     "; analyses try all values of at most " + Twine(kMaxSteering) + ". Let loops share bounds");
  }

  // From Allocated on.

  void checkAllocation() {
    for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
      if (buffer->space == Space::Shared)
        checkOffset(*buffer);
    for (size_t i = 0; i != kernel.buffers.size(); ++i)
      for (size_t j = 0; j != i; ++j)
        checkApart(*kernel.buffers[j], *kernel.buffers[i]);
  }

  void checkOffset(const Buffer &buffer) {
    auto defect = [&](const Twine &message) { state.defect(buffer.location, "%" + buffer.name + ": " + message); };
    if (!buffer.offset)
      return defect("no offset in phase " + toString(kernel.phase));
    if (*buffer.offset % 16 != 0)
      defect("offset " + Twine(*buffer.offset) + " is not a multiple of 16");
    if (buffer.bytes() > kernel.sharedBytes || *buffer.offset > kernel.sharedBytes - buffer.bytes())
      defect("bytes " + Twine(*buffer.offset) + " to " + Twine(*buffer.offset + buffer.bytes()) +
             " reach over the kernel's " + Twine(kernel.sharedBytes) + " B");
    const Buffer *const base = buffer.overlays;
    if (base && base->offset != buffer.offset)
      defect("the buffer does not begin where %" + base->name + " does, which it overlays");
  }

  void checkApart(const Buffer &a, const Buffer &b) {
    if (!a.offset || !b.offset || a.overlays || b.overlays)
      return;
    if (*a.offset < *b.offset + b.bytes() && *b.offset < *a.offset + a.bytes())
      state.defect(b.location, "%" + a.name + " and %" + b.name + " share bytes, and neither overlays another");
  }

  // From Placed on.

  void checkSites() {
    std::set<unsigned> used, listed;
    for (const Role &role : kernel.roles)
      walk(role.body, [&](const Op &op) {
        if (op.kind == OpKind::Place)
          state.defect(op.location, "a place is left in phase " + toString(kernel.phase));
        if (!opInfo(op.kind).hasSite)
          return;
        if (kernel.phase >= Phase::Verified && op.kind == OpKind::CopyWait && op.has(Attr::Pending) &&
            op.integer(Attr::Pending) < 0)
          state.defect(op.location, "copy_wait is not counted in phase " + toString(kernel.phase));
        if (op.site == 0)
          state.defect(op.location, opInfo(op.kind).name + " has no site in phase " + toString(kernel.phase));
        else if (!used.insert(op.site).second)
          state.defect(op.location, "site " + Twine(op.site) + " is given to two ops");
      });
    for (const LedgerEntry &entry : kernel.ledger) {
      if (!listed.insert(entry.site).second)
        state.defect(kernel.location, "the ledger lists site " + Twine(entry.site) + " twice");
      if (!used.count(entry.site))
        state.defect(kernel.location, "the ledger lists site " + Twine(entry.site) + ", which no op has");
    }
    for (unsigned site : used)
      if (!listed.count(site))
        state.defect(kernel.location, "the ledger lacks site " + Twine(site));
  }

  const Kernel &kernel;
  VerifierState state;
};

} // namespace

bool ir::verify(const Kernel &kernel, DefectHandler report) { return KernelVerifier(kernel, report).run(); }

/// A global buffer of one name is one buffer in all kernels.
static bool verifyGlobals(const Program &program, DefectHandler report) {
  llvm::StringMap<const Buffer *> known;
  bool sound = true;
  for (const std::unique_ptr<Kernel> &kernel : program.kernels)
    for (const std::unique_ptr<Buffer> &buffer : kernel->buffers) {
      if (buffer->space != Space::Global)
        continue;
      const Buffer &first = *known.try_emplace(buffer->name, buffer.get()).first->second;
      if (first.type == buffer->type && first.columns == buffer->columns && first.param == buffer->param &&
          (first.map || buffer->map || first.shape == buffer->shape))
        continue;
      report(buffer->location, "%" + buffer->name + " has another type, shape or parameter in kernel '" +
                                   kernel->symbol + "' than in one before it");
      sound = false;
    }
  return sound;
}

static bool classifies(const Kernel &kernel) {
  bool found = false;
  for (const Role &role : kernel.roles)
    forEach<ClassifyTilesOp>(role.body, [&](ClassifyTilesOp<const Op>) { found = true; });
  return found;
}

/// What a kernel reads of the workspace another one has written, which is launched before it.
static bool verifyScratch(const Program &program, DefectHandler report) {
  bool sound = true;
  for (const std::unique_ptr<Kernel> &kernel : program.kernels) {
    const Buffer *const scratch = kernel->scratchTensor();
    const bool isRead = scratch && llvm::any_of(kernel->lets, [](const Let &let) { return let.judged.has_value(); });
    const auto writes = [&](const std::unique_ptr<Kernel> &other) {
      return other != kernel && classifies(*other) && other->buffer(scratch->name);
    };
    if (!isRead || llvm::any_of(program.kernels, writes))
      continue;
    report(scratch->location, "%" + scratch->name + " is a scratch that no other kernel of the program writes");
    sound = false;
  }
  return sound;
}

bool ir::verify(const Program &program, DefectHandler report) {
  bool sound = true;
  std::set<StringRef> symbols;
  for (const std::unique_ptr<Kernel> &kernel : program.kernels) {
    if (!symbols.insert(kernel->symbol).second) {
      report(kernel->location, "two kernels have the symbol '" + kernel->symbol + "'");
      sound = false;
    }
    sound &= verify(*kernel, report);
  }
  sound &= verifyGlobals(program, report) && verifyMembers(program, report) && verifyScratch(program, report);
  if (program.kernels.empty())
    report({}, "program '" + program.name + "' has no kernel");
  return sound && !program.kernels.empty();
}

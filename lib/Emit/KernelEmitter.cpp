// fagen: the text of a kernel: head, constants, storage, then the functions in the order in which they run.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Emit/Kernel.h"

#include "OpEmitter.h"

#include "fagen/IR/ExprAnalysis.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/ErrorHandling.h"

#include <set>
#include <utility>

using namespace fagen;
using namespace fagen::ir;

namespace {

llvm::StringRef spelling(ElementType type) {
  switch (type) {
  case ElementType::F16:
    return "f16";
  case ElementType::BF16:
    return "bf16";
  case ElementType::F32:
    return "float";
  case ElementType::U32:
    return "unsigned";
  case ElementType::MBarrier:
    return "mbarrier";
  }
  return {};
}

/// Of a shared tile in the head's map, and as the device library's Swizzle.
struct LayoutText {
  llvm::StringRef description, enumerator;
};
LayoutText spelling(Layout layout) {
  switch (layout) {
  case Layout::RowMajor:
    return {"row-major", "kNone"};
  case Layout::Xor:
    return {"swizzle xor", "kXor"};
  case Layout::Padded:
    return {"padded rows", "kPad"};
  }
  return {};
}

/// "key_tile": KeyTile.
std::string typeName(llvm::StringRef buffer) {
  std::string name;
  bool upper = true;
  for (char c : buffer) {
    if (c == '_') {
      upper = true;
      continue;
    }
    name += upper ? llvm::toUpper(c) : c;
    upper = false;
  }
  return name + "Tile";
}

/// The body of a role cut at its loops: what runs before, the steps, what runs after.
struct Sections {
  struct Steps {
    const Op *loop;
    std::vector<const Op *> before; ///< what runs between the loop before and this one
  };
  std::vector<const Op *> prologue;
  std::vector<Steps> loops;
  std::vector<const Op *> epilogue;

  explicit Sections(const Block &body) {
    for (const std::unique_ptr<Op> &op : body.ops) {
      if (op->kind == OpKind::Loop)
        loops.push_back({op.get(), std::exchange(epilogue, {})});
      else
        (loops.empty() ? prologue : epilogue).push_back(op.get());
    }
  }
};

class KernelEmitter {
public:
  KernelEmitter(const Kernel &kernel, const Variant &variant, Instrument instrument)
      : kernel(kernel), variant(variant), instrument(instrument), load(findRole(kernel, "load")),
        math(kernel.roles.back()), turns(findTurns(math.body)), sections(turns ? turns->body : math.body), points(math),
        stream(text.source), out(stream) {}

  KernelText run() {
    emitHead();
    emitIncludes();
    line(out,
         "namespace fagen::generated {{\n\nusing namespace fagen::device;\n\nnamespace {{\n\nusing Element = {};\n",
         toString(variant.problem.dtype).str());
    emitConstants();
    emitStorage();
    emitCta();
    emitRegisters();
    if (load)
      emitLoad();
    emitFunction("prologue", "What runs before the first key tile.", "", sections.prologue);
    for (const Sections::Steps &steps : sections.loops) {
      if (!steps.before.empty())
        emitFunction(nameOfBefore(*steps.loop), "What runs once, between the steps above and those below.", "",
                     steps.before);
      emitStep(*steps.loop);
    }
    emitFunction("epilogue", "What runs after the last key tile.", "", sections.epilogue, /*isEpilogue=*/true);
    line(out, "}} // namespace\n");
    emitEntry();
    stream.flush();
    return std::move(text);
  }

private:
  static const Role *findRole(const Kernel &kernel, llvm::StringRef name) {
    auto found = llvm::find_if(kernel.roles, [&](const Role &role) { return role.name == name; });
    return found == kernel.roles.end() ? nullptr : &*found;
  }

  /// The loop over the tiles of query rows of a CTA; null where it has one.
  static const Op *findTurns(const Block &body) {
    auto found = llvm::find_if(body.ops, [](const std::unique_ptr<Op> &op) { return op->has("carry"); });
    return found == body.ops.end() ? nullptr : found->get();
  }

  void emitHead();
  void emitSharedMap();
  void emitLedger();
  void emitIncludes();
  void emitConstants();
  void emitTileTypes();
  void emitStorage();
  void emitCta();
  void emitRegisters();
  std::vector<Let> letsOfTile() const;
  void emitCtaAt();
  void emitTurns(llvm::StringRef group, llvm::function_ref<void()> body);
  void emitLoad();
  void emitRoles();
  void emitFunction(llvm::StringRef name, llvm::StringRef summary, llvm::StringRef parameters,
                    llvm::ArrayRef<const Op *> ops, bool isEpilogue = false, bool isSampled = false);
  void emitStep(const Op &loop);
  static std::string nameOfBefore(const Op &loop) { return ("before_" + loop.text("name")).str(); }
  void emitLoops();
  void emitEntry();
  void emitEntryOfOneTile();
  void emitPersistentEntry();
  std::string expressionOf(const Expr &value);
  std::string fragmentType(const Buffer &buffer) const;
  std::string letValue(const Expr &value) const;
  bool runsAtMostOnce(const Op &loop) const;
  bool isSampled(const Op &loop) const;
  std::vector<const Buffer *> buffersIn(Space space) const;
  std::vector<const Buffer *> runningRings() const;
  std::string locate() const;
  void emitFirstSources();

  const Kernel &kernel;
  const Variant &variant;
  const Instrument instrument;
  const Role *const load; ///< null where every warp loads
  const Role &math;
  const Op *const turns;   ///< null where a CTA has one tile of query rows
  const Sections sections; ///< of math, of one tile
  const Points points;
  KernelText text;
  llvm::raw_string_ostream stream;
  IndentedStream out;
};

std::vector<const Buffer *> KernelEmitter::buffersIn(Space space) const {
  std::vector<const Buffer *> found;
  for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
    if (buffer->space == space)
      found.push_back(buffer.get());
  return found;
}

/// Whether the lets' own expressions say so, as they do of the last tile of a tensor without a mask: ptxas need not
/// keep what a second step would want.
bool KernelEmitter::runsAtMostOnce(const Op &loop) const {
  auto expand = [&](Expr expr) {
    for (const Let &let : llvm::reverse(kernel.lets))
      expr = expr.substitute(let.name, let.value);
    for (const Constant &value : kernel.constants)
      expr = expr.substitute(value.name, constant(value.value));
    return expr;
  };
  const std::optional<Interval> steps = difference(expand(loop.expr("end")), expand(loop.expr("begin")));
  return steps && steps->high <= 1;
}

static bool isMasked(const Op &loop) {
  return llvm::any_of(loop.body.ops, [](const std::unique_ptr<Op> &op) { return op->kind == OpKind::Mask; });
}

/// Whether only some steps tell their stages: of the loop over whole tiles.
bool KernelEmitter::isSampled(const Op &loop) const {
  return instrument == Instrument::Stages && !runsAtMostOnce(loop) && !isMasked(loop);
}

/// The rings that are filled by running copies.
std::vector<const Buffer *> KernelEmitter::runningRings() const {
  llvm::SetVector<const Buffer *> found;
  auto visit = [&](const Op &op) {
    if (op.kind == OpKind::CopyIssue && op.isSet("running"))
      found.insert(op.operand("dst").buffer);
  };
  for (const std::unique_ptr<Op> &op : math.body.ops) {
    visit(*op);
    for (const std::unique_ptr<Op> &inner : op->body.ops)
      visit(*inner);
  }
  return {found.begin(), found.end()};
}

/// Tiles in the order of their rows, or the longest first when later rows have more key tiles.
std::string KernelEmitter::locate() const {
  const bool grows = llvm::any_of(kernel.lets, [&](const Let &let) {
    const Expr value = let.value.substitute("kTileKeys", constant(kernel.constant("kTileKeys")));
    return let.name == "key_tiles" && direction(value, "row_begin") == Direction::NotDecreasing;
  });
  if (turns)
    return "locate_tile<kTileRows>"; // only without a mask
  const std::string order = grows                 ? ", TileOrder::kLastTileFirst"
                            : kernel.packsHeads() ? ", TileOrder::kFirstTileFirst"
                                                  : "";
  return fmt::format("locate_cta<kTileRows{}{}>", order, kernel.packsHeads() ? ", Rows::kOfGroup" : "");
}

/// Whether the first thread of a role executes the op for all of them.
static bool isByOneThread(const Op &op) {
  switch (op.kind) {
  case OpKind::MbarrierInit:
  case OpKind::Fence:
    return true;
  case OpKind::CopyIssue:
    return op.text("kind") == "bulk";
  case OpKind::Arrive:
  case OpKind::Wait:
    return op.text("by") == "role";
  case OpKind::Loop:
    return llvm::all_of(op.body.ops, [](const std::unique_ptr<Op> &inner) { return isByOneThread(*inner); });
  default:
    return false;
  }
}

/// As inside a generated function.
std::string KernelEmitter::expressionOf(const Expr &value) {
  return OpEmitter(kernel, points, out, text.ops).expression(value);
}

/// One tile after the other, by one thread or by whole warps, which therefore say their group: `body` writes what is
/// done with each.
void KernelEmitter::emitTurns(llvm::StringRef group, llvm::function_ref<void()> body) {
  line(out, "for (int turn = 0, base = 0; turn < tiles_of_cta<kTileRows>(params); ++turn) {{");
  {
    auto scope = out.scope();
    line(out, "const Cta cta = cta_at(params, {}, turn, base);", group.str());
    body();
    line(out, "base += {};", expressionOf(turns->expr("step")));
  }
  line(out, "}}");
}

/// One thread works on both sides of the barrier.
void KernelEmitter::emitLoad() {
  const Points loadPoints(*load);
  line(out, "/// Role load: one thread makes the mbarriers and then asks for Q and, tile by tile, for K and V.");
  line(out, "__device__ __forceinline__ void load(const {}) {{", turns ? "MappedAttentionParams &params" : "Cta &cta");
  {
    auto scope = out.scope();
    OpEmitter emitter(kernel, loadPoints, out, text.ops, "load.");
    std::vector<const Op *> before, after;
    const Op *barrier = nullptr;
    for (const std::unique_ptr<Op> &op : load->body.ops) {
      if (op->kind == OpKind::Barrier && !barrier)
        barrier = op.get();
      else if (isByOneThread(*op))
        (barrier ? after : before).push_back(op.get());
      else
        llvm::report_fatal_error("emit: role load does more than one thread can");
    }
    line(out, "const bool is_first = ptx::thread_index() == 0;\nif (is_first) {{");
    {
      auto inner = out.scope();
      if (turns)
        line(out, "const Cta cta = cta_at(params, 0, 0, 0);");
      emitter.emitBlock(before);
    }
    line(out, "}}");
    emitter.emitBlock({barrier});
    line(out, "if (!is_first)\n  return;");
    if (!turns)
      emitter.emitBlock(after);
    else
      emitTurns("0", [&] {
        std::vector<const Op *> ops;
        for (const std::unique_ptr<Op> &op : after.front()->body.ops)
          ops.push_back(op.get());
        emitter.emitBlock(ops);
      });
  }
  line(out, "}}\n");
}

/// Running copies begin with the first row.
void KernelEmitter::emitFirstSources() {
  for (const Buffer *ring : runningRings())
    line(out, "r.next_{0} = own_source<TileShare<kThreads, kVectorBytes, {1}>>(cta.{0}, cta.params.{0}_stride[2], 0);",
         ring->name, typeName(ring->name));
}

void KernelEmitter::emitHead() {
  const Schedule &schedule = variant.schedule;
  const std::string scheduleName = schedule.implicit       ? "made by the compiler for unaligned tensors"
                                   : schedule.name.empty() ? "its only schedule"
                                                           : "schedule " + schedule.name;
  line(out, "// Generated by fagen from {}. Do not edit: change the spec and run fagen again.", variant.location.file);
  line(out, "// This file is unencumbered: no licence of fagen applies to generated text.");
  line(out, "//");
  line(out, "// Kernel {} ({}), target {}, {} ({}).", variant.name, variant.location.str(), kernel.target, scheduleName,
       schedule.location.str());
  line(out,
       "// O = softmax(scale Q K^T + mask) V; {} query rows x {} keys at once, {} warps: {} over rows x {} over keys.",
       schedule.tileRows, schedule.tileKeys, schedule.warps, schedule.rowWarps, schedule.keyWarps);
  if (kernel.packsHeads())
    line(out, "// Rows are those of all query heads of a K/V head: row r is query r / heads_per_kv.");
  line(out, "//");
  emitSharedMap();
  emitLedger();
  if (instrument != Instrument::None)
    line(out, "//\n// Instrumented: each warp leaves the clocks of its stages{} in the workspace.",
         instrument == Instrument::Trace ? ", and the first steps of some CTAs," : "");
  out << '\n';
}

void KernelEmitter::emitSharedMap() {
  for (const Buffer *buffer : buffersIn(Space::Shared)) {
    if (buffer->type == ElementType::MBarrier) {
      line(out, "//   shared   {:<8} {:>6} {:>7} B  {} mbarrier{}", buffer->name, *buffer->offset, buffer->bytes(),
           buffer->stages, buffer->stages == 1 ? "" : "s");
      continue;
    }
    const std::string stages = buffer->isRing ? fmt::format("{} stages of ", buffer->stages) : "";
    const std::string overlay =
        buffer->overlays.empty() ? "" : fmt::format(", in the bytes of {} and what follows", buffer->overlays);
    line(out, "//   shared   {:<8} {:>6} {:>7} B  {}{} x {} {}, {}{}", buffer->name, *buffer->offset, buffer->bytes(),
         stages, buffer->rows, buffer->columns, spelling(buffer->type).str(),
         spelling(buffer->layout).description.str(), overlay);
  }
  line(out, "//   shared   total           {:>7} B", kernel.sharedBytes);
  for (const Role &role : kernel.roles)
    line(out, "//   role     {:<8} warps {} to {}", role.name, role.firstWarp, role.firstWarp + role.warps - 1);
}

void KernelEmitter::emitLedger() {
  for (const LedgerEntry &entry : kernel.ledger)
    line(out, "//   site {:>2}  {:<14} {}", entry.site, entry.what, entry.covers);
}

void KernelEmitter::emitIncludes() {
  std::set<llvm::StringRef> headers; // sorted
  headers.insert(load ? "ops/pipeline.h" : "ops/copy.h");
  for (const Op *op : sections.epilogue)
    if (op->kind == OpKind::StorePartial)
      headers.insert("ops/merge.h");
  if (kernel.backend == "wgmma")
    headers.insert("ops/wgmma.h");
  if (kernel.backend == "scalar" || kernel.backend == "wmma") {
    headers.insert(kernel.backend == "scalar" ? "ops/scalar.h" : "ops/wmma.h");
  } else {
    headers.insert("ops/mma.h");
    walk(kernel.roles.front().body, [&](const Op &op) {
      if (op.kind == OpKind::Mma && op.has("sums"))
        headers.insert("ops/mma_f16.h");
    });
    headers.insert("ops/softmax.h");
    headers.insert("ops/store.h");
  }
  if (instrument != Instrument::None)
    headers.insert("ops/stage_clock.h");
  headers.insert("ptx/barrier.h");
  headers.insert("tile/cta.h");
  headers.insert("tile/fragment.h");
  headers.insert("tile/integer.h");
  if (kernel.packsHeads())
    headers.insert("tile/rows.h");
  headers.insert("tile/shared_tile.h");
  for (llvm::StringRef header : headers)
    line(out, "#include <fagen/device/{}>", header.str());
  out << '\n';
}

/// Lines with trailing comments, the comments one below the other.
static void printAligned(IndentedStream &out, llvm::ArrayRef<std::pair<std::string, std::string>> lines) {
  size_t width = 0;
  for (const auto &[code, comment] : lines)
    width = std::max(width, code.size());
  for (const auto &[code, comment] : lines)
    line(out, "{:<{}} // {}", code, width, comment);
}

void KernelEmitter::emitConstants() {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const Constant &constant : kernel.constants) {
    llvm::StringRef origin = constant.origin;
    if (constant.name == "kBarrierPolicy" || constant.name == "kRefill" || constant.name == "kOverlap" ||
        constant.name == "kGrid") // passes read them, no kernel
      continue;
    if (origin.consume_front("= "))
      lines.push_back(
          {fmt::format("constexpr int {} = {};", constant.name, origin.str()), std::to_string(constant.value)});
    else
      lines.push_back({fmt::format("constexpr int {} = {};", constant.name, constant.value),
                       constant.location.isKnown() ? fmt::format("{} {}", constant.location.str(), constant.origin)
                                                   : constant.origin});
  }
  printAligned(out, lines);
  out << '\n';
}

void KernelEmitter::emitTileTypes() {
  for (const Buffer *buffer : buffersIn(Space::Shared)) {
    if (buffer->type == ElementType::MBarrier)
      continue;
    auto named = [&](unsigned value, std::initializer_list<llvm::StringRef> names) {
      for (llvm::StringRef name : names)
        if (kernel.hasConstant(name) && kernel.constant(name) == value)
          return name.str();
      return std::to_string(value);
    };
    const bool isTensor = buffer->type != ElementType::F32;
    static constexpr llvm::StringLiteral kOfQueries[] = {"q", "s", "p", "pv", "scratch"};
    const bool isQuery = llvm::is_contained(kOfQueries, buffer->name);
    const bool isScores = buffer->name == "s" || buffer->name == "p";
    const bool isOutput = buffer->name == "v" || buffer->name == "pv";
    const std::string rows = buffer->name == "partial" ? "kKeyWarps * kTileRows"
                                                       : named(buffer->rows, {isQuery ? "kTileRows" : "kTileKeys"});
    const std::string columns = buffer->name == "partial" ? "kHeadDimV + kPartialExtra"
                                : isScores                ? "kTileKeys"
                                           : named(buffer->columns, {isOutput ? "kHeadDimV" : "kHeadDimQK"});
    line(out, "using {} = SharedTile<{}, {}, {}, Swizzle::{}>;", typeName(buffer->name), isTensor ? "Element" : "float",
         rows, columns, spelling(buffer->layout).enumerator.str());
  }
  out << '\n';
}

/// Members stand in the order of allocation, so that sizeof proves the offsets of the head's map.
void KernelEmitter::emitStorage() {
  emitTileTypes();
  std::vector<const Buffer *> rings, overlays;
  for (const Buffer *buffer : buffersIn(Space::Shared)) {
    if (buffer->isRing && buffer->type != ElementType::MBarrier)
      rings.push_back(buffer);
    if (!buffer->overlays.empty())
      overlays.push_back(buffer);
  }
  line(out, "struct KvRing {{");
  for (const Buffer *ring : rings)
    line(out, "  {} {}[kStages];", typeName(ring->name), ring->name);
  line(out, "}};\n\nstruct SharedStorage {{");
  bool ringWritten = false;
  for (const Buffer *buffer : buffersIn(Space::Shared)) {
    if (buffer->type == ElementType::MBarrier) {
      line(out, "  Mbarriers<{}> {};", buffer->stages == 1 ? "1" : "kStages", buffer->name);
      continue;
    }
    if (!buffer->overlays.empty() || (buffer->isRing && ringWritten))
      continue;
    if (!buffer->isRing) {
      line(out, "  {} {};", typeName(buffer->name), buffer->name);
      continue;
    }
    ringWritten = true;
    if (overlays.empty()) {
      line(out, "  KvRing ring;");
      continue;
    }
    line(out, "  union {{\n    KvRing ring;");
    for (const Buffer *overlay : overlays)
      line(out, "    {} {};", typeName(overlay->name), overlay->name);
    line(out, "  }};");
  }
  line(out, "}};\nstatic_assert(sizeof(SharedStorage) == {}, \"shared memory is as allocate-shared laid it out\");\n",
       kernel.sharedBytes);
}

/// A let with run-time values spelled as the entry function reaches them.
std::string KernelEmitter::letValue(const Expr &value) const {
  return spellSizes(value, "params").substitute("row_begin", variable("place.row_begin")).str();
}

void KernelEmitter::emitCta() {
  line(out, "/// What all threads of a CTA share.\nstruct Cta {{");
  line(out, "  const {} &params;\n  SharedStorage &shared;", load ? "MappedAttentionParams" : "AttentionParams");
  std::vector<std::pair<std::string, std::string>> members;
  if (load)
    members = {{"int batch;", "of Q, K, V and O"},
               {"int head;", "of Q and O"},
               {"int kv_head;", "of K and V"},
               {"int row_begin;", "first query row"},
               {"int group_row;", "first row of this warp group in the tile"}};
  else
    members = {{"const Element *q;", kernel.packsHeads() ? "row 0 of the group's first head" : "row 0 of the head"},
               {"const Element *k;", "row 0 of the K/V head"},
               {"const Element *v;", "likewise"},
               {"int row_begin;", "first query row"}};
  if (turns)
    members.insert(members.end(), {{"int tile;", "number of the tile of query rows"},
                                   {"int turn;", "tiles that this CTA had before"},
                                   {"int base;", "key tiles of those"}});
  for (const Let &let : letsOfTile())
    members.push_back({fmt::format("int {};", let.name), let.note});
  {
    auto scope = out.scope();
    printAligned(out, members);
  }
  line(out, "}};\n");
  if (load) {
    line(out, "/// First query row of this warp in the tile.");
    line(out, "__device__ __forceinline__ int warp_row() {{ return (ptx::warp_index() - kLoadWarps) * kWarpRows; }}\n");
    if (turns)
      emitCtaAt();
    return;
  }
  line(out, "/// First query row and first key of this warp in the tile.");
  line(out, "__device__ __forceinline__ int warp_row() {{ return ptx::warp_index() % kRowWarps * kWarpRows; }}");
  line(out, "__device__ __forceinline__ int warp_key() {{ return ptx::warp_index() / kRowWarps * kWarpKeys; }}\n");
}

/// All but the number of tiles.
std::vector<Let> KernelEmitter::letsOfTile() const {
  std::vector<Let> lets;
  for (const Let &let : kernel.lets)
    if (let.name != "cta_tiles")
      lets.push_back(let);
  return lets;
}

void KernelEmitter::emitCtaAt() {
  line(out, "/// At the CTA's tile number `turn`, with `base` key tiles behind it, for warp group `group`.");
  line(out,
       "__device__ __forceinline__ Cta cta_at(const MappedAttentionParams &params, int group, int turn, int base) {{");
  {
    auto scope = out.scope();
    line(out, "const int tile = ptx::cta_index() + turn * ptx::cta_count();");
    line(out, "const CtaPlace place = {}(params, tile);", locate());
    for (const Let &let : letsOfTile())
      line(out, "const int {} = {};", let.name, letValue(let.value));
    line(out, "return {{params,");
    line(out, "        ptx::shared_storage<SharedStorage>(),");
    line(out, "        place.batch,\n        place.head,\n        place.kv_head,\n        place.row_begin,");
    line(out, "        (group - 1) * 4 * kWarpRows,");
    std::string rest = "tile,\n        turn,\n        base";
    for (const Let &let : letsOfTile())
      rest += ",\n        " + let.name;
    line(out, "        {}}};", rest);
  }
  line(out, "}}\n");
}

std::string KernelEmitter::fragmentType(const Buffer &buffer) const {
  const bool isMma = kernel.backend == "mma_sync" ||
                     kernel.backend == "wgmma"; // else O and the rows are the lanes' of ops/lane_softmax.h
  if (buffer.columns == 1)
    return isMma ? "RowValues<kWarpRows>" : "LaneRows<kWarpRows>";
  const std::string columns = buffer.name == "q_fragment" ? "kHeadDimQK"
                              : buffer.name == "o"        ? "kHeadDimV"
                                                          : "kWarpKeys";
  if (buffer.type == ElementType::F32)
    return fmt::format("{}<kWarpRows, {}>", isMma ? "Accumulator" : "LaneColumns", columns);
  return fmt::format("{}<Element, kWarpRows, {}>", isMma ? "LeftOperand" : "WmmaOperand", columns);
}

void KernelEmitter::emitRegisters() {
  line(out, "/// What a thread keeps in registers.\nstruct Registers {{");
  for (const Buffer *buffer : buffersIn(Space::Fragment))
    line(out, "  {} {};", fragmentType(*buffer), buffer->name);
  for (const Buffer *ring : runningRings())
    line(out, "  const Element *next_{}; // where this thread's next vector comes from", ring->name);
  if (instrument != Instrument::None)
    line(out, "  StageClock<kWarps, {}> clock;", instrument == Instrument::Trace);
  line(out, "}};\n");
}

void KernelEmitter::emitFunction(llvm::StringRef name, llvm::StringRef summary, llvm::StringRef parameters,
                                 llvm::ArrayRef<const Op *> ops, bool isEpilogue, bool isSampled) {
  line(out, "/// {}", summary.str());
  if (isSampled)
    line(out, "template <bool kSampled>");
  line(out, "__device__ __forceinline__ void {}(const Cta &cta, Registers &r{}) {{", name.str(), parameters.str());
  {
    auto scope = out.scope();
    OpEmitter emitter(kernel, points, out, text.ops, load ? "math." : "");
    if (isEpilogue) {
      emitter.enterEpilogue();
      line(out, "const CtaPlace place = {}(cta.params{});", locate(), turns ? ", cta.tile" : "");
    }
    if (isSampled)
      emitter.sampleStages();
    else if (instrument != Instrument::None)
      emitter.markStages();
    if (name == "prologue")
      emitFirstSources();
    emitter.emitBlock(ops);
  }
  line(out, "}}\n");
}

void KernelEmitter::emitStep(const Op &loop) {
  std::vector<const Op *> ops;
  for (const std::unique_ptr<Op> &op : loop.body.ops)
    ops.push_back(op.get());
  const llvm::StringRef name = loop.text("name");
  emitFunction((name + "_step").str(),
               name == "first"  ? "Scores and softmax of the first key tile: no P V runs under them yet."
               : name == "last" ? "P V of the last key tile."
               : isMasked(loop) ? "Key tile j, of which some rows see only a part."
                                : "Key tile j, which every row sees whole.",
               (", int " + loop.text("variable")).str(), ops, /*isEpilogue=*/false, isSampled(loop));
}

void KernelEmitter::emitLoops() {
  for (const auto &[loop, before] : sections.loops) {
    if (!before.empty())
      line(out, "{}(cta, r);", nameOfBefore(*loop));
    const std::string variable = loop->text("variable").str();
    const Expr first = loop->expr("begin"), last = loop->expr("end");
    const std::string begin = turns ? expressionOf(first) : letValue(first);
    const std::string end = turns ? expressionOf(last) : letValue(last);
    if (runsAtMostOnce(*loop))
      line(out, "if (const int {0} = {1}; {0} < {2})", variable, begin, end);
    else
      line(out, "for (int {0} = {1}; {0} < {2}; ++{0})", variable, begin, end);
    const std::string step = (loop->text("name") + "_step").str();
    if (!isSampled(*loop)) {
      line(out, "  {}(cta, r, {});", step, variable);
      continue;
    }
    line(out, "  if (r.clock.samples({}))", begin == "0" ? variable : fmt::format("{} - {}", variable, begin));
    line(out, "    {}<true>(cta, r, {});\n  else\n    {}<false>(cta, r, {});", step, variable, step, variable);
  }
}

/// Registers go from those who load to those who compute.
void KernelEmitter::emitRoles() {
  line(out, "if (group == 0) {{\n  ptx::setmaxnreg_dec<kLoadRegisters>();\n  load({});\n  return;\n}}",
       turns ? "params" : "cta");
  line(out, "ptx::setmaxnreg_inc<kMathRegisters>();");
}

/// The entry of a kernel whose CTAs take one tile after the other.
void KernelEmitter::emitPersistentEntry() {
  auto scope = out.scope();
  line(out, "const int group = ptx::warp_group_index(); // 0 loads");
  emitRoles();
  OpEmitter emitter(kernel, points, out, text.ops, "math.");
  for (const std::unique_ptr<Op> &op : math.body.ops)
    if (op.get() != turns)
      emitter.emitBlock({op.get()});
  emitTurns("group", [&] {
    line(out, "Registers r;\nprologue(cta, r);");
    emitLoops();
    line(out, "epilogue(cta, r);");
  });
}

void KernelEmitter::emitEntry() {
  line(out, "extern \"C\" __global__ void __launch_bounds__(kThreads, 1) {}(const __grid_constant__ {} params) {{",
       kernel.symbol, load ? "MappedAttentionParams" : "AttentionParams");
  if (turns)
    emitPersistentEntry();
  else
    emitEntryOfOneTile();
  line(out, "}}\n\n}} // namespace fagen::generated");
}

void KernelEmitter::emitEntryOfOneTile() {
  auto scope = out.scope();
  const bool isInstrumented = instrument != Instrument::None;
  if (isInstrumented)
    line(out, "Registers r;\nr.clock.start();");
  line(out, "const CtaPlace place = {}(params);", locate());
  for (const Let &let : kernel.lets)
    line(out, "const int {} = {};", let.name, letValue(let.value));
  if (load)
    line(out, "const int group = ptx::warp_group_index(); // 0 loads");
  line(out, "const Cta cta{{params,");
  line(out, "              ptx::shared_storage<SharedStorage>(),");
  if (load) {
    line(out, "              place.batch,\n              place.head,\n              place.kv_head,");
  } else {
    line(out, "              head_rows<Element>(params.q, params.q_stride, place.batch, place.head),");
    line(out, "              head_rows<Element>(params.k, params.k_stride, place.batch, place.kv_head),");
    line(out, "              head_rows<Element>(params.v, params.v_stride, place.batch, place.kv_head),");
  }
  std::string rest = "place.row_begin";
  if (load)
    rest += ",\n              (group - 1) * 4 * kWarpRows";
  for (const Let &let : kernel.lets)
    rest += ",\n              " + let.name;
  line(out, "              {}}};", rest);
  if (load)
    emitRoles();
  line(out, "{}", isInstrumented ? "r.clock.mark(params, Stage::kPrologue);" : "Registers r;");
  line(out, "prologue(cta, r);");
  emitLoops();
  line(out, "epilogue(cta, r);");
  if (isInstrumented)
    line(out, "r.clock.stop(params);");
}

} // namespace

KernelText fagen::emitKernel(const Kernel &kernel, const Variant &variant, Instrument instrument) {
  return KernelEmitter(kernel, variant, instrument).run();
}

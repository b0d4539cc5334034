// fagen: what a generated kernel keeps where: shared memory, what is the CTA's, registers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KernelEmitter.h"
#include "splits/SharedKeys.h"

#include "fagen/IR/ExprTypes.h"
#include "fagen/IR/Queries.h"

#include "fagen/Target/MmaInstrs.h"

#include "llvm/ADT/SmallPtrSet.h"

#include <utility>

using namespace fagen;
using namespace fagen::ir;

bool fagen::isHandedOver(const Buffer &buffer) {
  return buffer.type == ElementType::MBarrier || buffer.type == ElementType::U32;
}

std::string fagen::handoverType(const Buffer &buffer) {
  if (buffer.type == ElementType::U32)
    return "NextTile";
  return fmt::format("Mbarriers<{}>", buffer.stages == 1 ? "1" : buffer.stages.str());
}

void KernelEmitter::emitTileTypes() {
  for (const Buffer *buffer : buffersIn(Space::Shared)) {
    if (isHandedOver(*buffer))
      continue;
    line(out, "using {} = SharedTile<{}, {}, {}, Swizzle::{}>;", typeOfTile(buffer->name),
         spellElement(buffer->type).str(), buffer->rows.str(), buffer->columns.str(),
         layoutText(buffer->layout).enumerator.str());
  }
  out << '\n';
}

/// Members stand in the order of allocation, so that sizeof proves the offsets of the head's map.
void KernelEmitter::emitStorage() {
  emitTileTypes();
  std::vector<const Buffer *> rings, overlays;
  for (const Buffer *buffer : buffersIn(Space::Shared)) {
    if (buffer->isRing && !isHandedOver(*buffer) && isOfKeys(kernel, *buffer))
      rings.push_back(buffer);
    if (buffer->overlays)
      overlays.push_back(buffer);
  }
  line(out, "struct KvRing {{");
  for (const Buffer *ring : rings)
    line(out, "  {} {}[{}];", typeOfTile(ring->name), ring->name, ring->stages.str());
  line(out, "}};\n\nstruct SharedStorage {{");
  bool ringWritten = false;
  for (const Buffer *buffer : buffersIn(Space::Shared)) {
    if (isHandedOver(*buffer)) {
      line(out, "  {} {};", handoverType(*buffer), buffer->name);
      continue;
    }
    if (buffer->overlays || (buffer->isRing && isOfKeys(kernel, *buffer) && ringWritten))
      continue;
    if (!buffer->isRing || !isOfKeys(kernel, *buffer)) {
      line(out, "  {} {}{};", typeOfTile(buffer->name), buffer->name,
           buffer->isRing ? "[" + buffer->stages.str() + "]" : "");
      continue;
    }
    ringWritten = true;
    if (overlays.empty()) {
      line(out, "  KvRing ring;");
      continue;
    }
    line(out, "  union {{\n    KvRing ring;");
    for (const Buffer *overlay : overlays)
      line(out, "    {} {};", typeOfTile(overlay->name), overlay->name);
    line(out, "  }};");
  }
  line(out, "}};\nstatic_assert(sizeof(SharedStorage) == {}, \"shared memory is as allocate-shared laid it out\");\n",
       kernel.sharedBytes);
}

/// A let with run-time values spelled as the entry function reaches them.
std::string KernelEmitter::letValue(const Expr &value) const {
  const Expr reals = value.rewritten(
      [](const Expr &node) { return node.kind() == ExprKind::Real ? variable(spellReal(node.realValue())) : Expr(); });
  const Expr called = spellCalls(kernel, divisors, reals, "", [&](const Expr &operand) { return letValue(operand); });
  return spellRunValues(called,
                        [](RunScope scope) -> llvm::StringRef {
                          switch (scope) {
                          case RunScope::Launch:
                            return "params";
                          case RunScope::Tile:
                          case RunScope::Split:
                            return "place";
                          case RunScope::Cta:
                          case RunScope::Group:
                          case RunScope::Element:
                            return "";
                          }
                          return "";
                        })
      .str();
}

std::vector<Matrix> KernelEmitter::sources() const {
  llvm::SmallPtrSet<const Buffer *, 4> copied;
  forEach<CopyIssueOp>(math.body, [&](CopyIssueOp<const Op> copy) { copied.insert(copy.src().buffer); });
  std::vector<Matrix> found;
  for (const std::unique_ptr<Buffer> &view : kernel.buffers)
    if (copied.contains(view.get()))
      found.emplace_back(Operand{view.get(), {}});
  return found;
}

std::vector<std::pair<std::string, std::string>> KernelEmitter::membersOfSources() const {
  const std::string ofQueries = kernel.packsHeads() ? "row 0 of the group's first head" : "row 0 of the head";
  const std::string ofKeys = isSplit() ? "the first key's row of the K/V head" : "row 0 of the K/V head";
  std::vector<std::pair<std::string, std::string>> members;
  std::string before;
  for (const Matrix &source : sources()) {
    const std::string &what = source.at()[1].uses(nameOf(RunValue::KvHead)) ? ofKeys : ofQueries;
    members.push_back({fmt::format("const {} *{};", spellElement(source.tensor().type).str(), source.tensor().param),
                       what == before ? "likewise" : what});
    before = what;
  }
  members.push_back({"int row_begin;", "first query row"});
  return members;
}

/// Whether elements' values name the tile's batch or heads.
bool KernelEmitter::mapsNamePlaces() const {
  bool found = false;
  forEach<MapOp>(math.body, [&](MapOp<const Op> map) {
    map.value().forEachVariable([&](llvm::StringRef name) {
      const RunValueInfo *const info = findRunValue(name);
      found |= info && info->scope == RunScope::Tile;
    });
  });
  return found;
}

/// What the caller gives beside attention's parameters.
void KernelEmitter::emitFormParams() {
  if (!isFormed())
    return;
  line(out, "/// What the form takes in addition to attention's parameters.\nstruct FormParams {{");
  for (const Scalar &scalar : kernel.scalars)
    line(out, "  Scalar<{}> {};", scalar.isReal ? "float" : "int", scalar.name);
  for (const Buffer *tensor : kernel.readTensors())
    line(out, "  Tensor<{}, {}> {};", spellType(tensor->type).str(), tensor->shape.size(), tensor->name);
  line(out, "}};\n");
}

/// Beside the parameters and the storage: where the CTA stands, and what the form and the lets say of its tile.
std::vector<std::pair<std::string, std::string>> KernelEmitter::membersOfCta() const {
  std::vector<std::pair<std::string, std::string>> members;
  if (load)
    members = {{"int batch;", "of Q, K, V and O"},
               {"int head;", "of Q and O"},
               {"int kv_head;", "of K and V"},
               {"int row_begin;", "first query row"},
               {"int group_row;", "first row of this warp group in the tile"}};
  else
    members = membersOfSources();
  if (!load && mapsNamePlaces())
    members.insert(members.end(),
                   {{"int batch;", "of Q, K, V and O"}, {"int head;", "of Q and O"}, {"int kv_head;", "of K and V"}});
  if (isSplit())
    members.insert(members.end(),
                   {{"int split_begin;", "first key of the split"}, {"int split_keys;", "how many keys it has"}});
  if (turns)
    members.insert(members.end(), {{"int tile;", "number of the tile of query rows"},
                                   {"int turn;", "tiles that this CTA had before"},
                                   {"int base;", "key tiles of those"}});
  for (const Scalar &scalar : kernel.scalars)
    members.push_back({fmt::format("{} {};", scalar.isReal ? "float" : "int", scalar.name), "of the form"});
  for (const TileDivisor &divisor : divisors)
    members.push_back({fmt::format("Divisor {};", divisor.name), "divides by " + divisor.value.str()});
  for (const Let &let : letsOfTile())
    members.push_back(
        {fmt::format("{} {};", typeOf(let), let.name), let.source ? "read for the whole tile" : let.note});
  return members;
}

void KernelEmitter::emitCta() {
  line(out, "/// What all threads of a CTA share.\nstruct Cta {{");
  line(out, "  const {} &params;\n{}  SharedStorage &shared;", paramsType(),
       isFormed() ? "  const FormParams &form;\n" : "");
  {
    auto scope = out.scope();
    printAligned(out, membersOfCta());
  }
  line(out, "}};\n");
  if (load) {
    const std::string warp =
        fmt::format("(ptx::warp_index() - {})",
                    kernel.options.loadWarps ? kernel.options.loadWarps->value.str() : std::to_string(math.firstWarp));
    if (mmaFamily(kernel.backend).isAsynchronous) {
      line(out, "/// First query row of this warp in the tile.");
      line(out, "__device__ __forceinline__ int warp_row() {{ return {} * kWarpRows; }}\n", warp);
    } else {
      emitPlacesOfWarp(warp);
    }
    if (turns)
      emitCtaAt();
    return;
  }
  emitPlacesOfWarp("ptx::warp_index()");
}

/// Of warps that divide rows and keys.
void KernelEmitter::emitPlacesOfWarp(llvm::StringRef warp) {
  line(out, "/// First query row and first key of this warp in the tile.");
  line(out, "__device__ __forceinline__ int warp_row() {{ return {} % kRowWarps * kWarpRows; }}", warp.str());
  line(out, "__device__ __forceinline__ int warp_key() {{ return {} / kRowWarps * kWarpKeys; }}\n", warp.str());
}

/// Without what is the CTA's, over all its tiles.
std::vector<Let> KernelEmitter::letsOfTile() const {
  std::vector<Let> lets;
  for (const Let &let : kernel.lets)
    if (!usesScope(let.value, RunScope::Cta))
      lets.push_back(let);
  return lets;
}

/// 0 where there is no key, and so none of a tensor that has an element for each.
static Expr readOf(const GlobalElement &source) {
  const Expr read = Expr::read(source.buffer->name, source.at), keys = variable(RunValue::SeqKv);
  return llvm::is_contained(source.buffer->shape, keys) ? select(equal(keys, constant(0)), constant(0), read) : read;
}

std::string KernelEmitter::typeOf(const Let &let) const {
  return let.judged ? "SeenTiles" : isReal(kernel, let.name) ? "float" : "int";
}

bool KernelEmitter::judgesTiles() const {
  return llvm::any_of(kernel.lets, [](const Let &let) { return let.judged.has_value(); });
}

void KernelEmitter::emitSharedKeys() {
  const std::optional<SharedKeys> shared = sharedKeys(kernel);
  if (!shared)
    return;
  const std::string gap =
      shared->gapBegin ? fmt::format(", {}, {}", letValue(shared->gapBegin), letValue(shared->gapEnd)) : "";
  line(out, "share_seen_keys<kTileKeys>(place, params, {}, {}{});", letValue(shared->first), letValue(shared->end),
       gap);
}

/// With group_row, which they may name.
void KernelEmitter::emitLets() {
  if (load)
    line(out, "const int group_row = (group - 1) * 4 * kWarpRows;");
  for (const Scalar &scalar : kernel.scalars)
    if (!namesScalar(scalar))
      continue;
    else if (scalar.isReal)
      line(out, "const float {0} = value_of(form.{0});", scalar.name);
    else
      line(out, "const int {0} = value_of(form.{0}, {1}, {2});", scalar.name, scalar.low, scalar.high);
  for (const TileDivisor &divisor : divisors)
    line(out, "const Divisor {} = make_divisor({});", divisor.name, letValue(divisor.value));
  bool sharesKeys = true;
  for (const Let &let : letsOfTile()) {
    if (std::exchange(sharesKeys, sharesKeys && !usesScope(let.value, RunScope::Split)) != sharesKeys)
      emitSharedKeys();
    if (let.judged)
      emitJudgement(let);
    else
      line(out, "const {} {} = {};", typeOf(let), let.name, letValue(let.source ? readOf(*let.source) : let.value));
  }
}

/// What emitLets declares, in the order in which a Cta has it.
std::string KernelEmitter::namesOfLets(llvm::StringRef separator) const {
  std::string names;
  auto add = [&](const std::string &name) { names += separator.str() + name; };
  for (const Scalar &scalar : kernel.scalars)
    add(scalar.name);
  for (const TileDivisor &divisor : divisors)
    add(divisor.name);
  for (const Let &let : letsOfTile())
    add(let.name);
  return names;
}

void KernelEmitter::emitCtaAt() {
  line(out, "/// At this tile, the CTA's number `turn`, after `base` key tiles, for warp group `group`.");
  line(
      out,
      "__device__ __forceinline__ Cta cta_at(const MappedAttentionParams &params{}, int group, int tile, int turn, int "
      "base) {{",
      formParameter());
  {
    auto scope = out.scope();
    line(out, "const CtaPlace place = {}(params, tile);", locate());
    emitLets();
    line(out, "return {{params,");
    if (isFormed())
      line(out, "        form,");
    line(out, "        ptx::shared_storage<SharedStorage>(),");
    line(out, "        place.batch,\n        place.head,\n        place.kv_head,\n        place.row_begin,");
    line(out, "        group_row,");
    line(out, "        tile,\n        turn,\n        base{}}};", namesOfLets(",\n        "));
  }
  line(out, "}}\n");
}

std::string fagen::fragmentType(const MmaFamilyInfo &family, const Buffer &buffer, llvm::StringRef element) {
  const bool isMma =
      family.isCollective && family.keepsResults; // else O and the rows are the lanes' of ops/lane_softmax.h
  const std::string rows = buffer.rows.str(), columns = buffer.columns.str();
  if (buffer.columns == 1)
    return fmt::format("{}<{}>", isMma ? "RowValues" : "LaneRows", rows);
  if (buffer.type == ElementType::F32)
    return fmt::format("{}<{}, {}>",
                       buffer.isInQuads ? "QuadAccumulator"
                       : isMma          ? "Accumulator"
                                        : "LaneColumns",
                       rows, columns);
  return fmt::format("{}<{}, {}, {}>",
                     buffer.isInQuads ? "QuadOperand"
                     : isMma          ? "LeftOperand"
                                      : "WmmaOperand",
                     element.str(), rows, columns);
}

void KernelEmitter::emitRegisters() {
  line(out, "/// What a thread keeps in registers.\nstruct Registers {{");
  for (const Buffer *buffer : buffersIn(Space::Fragment))
    if (buffer->type != ElementType::U32 && text.registers.contains(buffer)) // the entry has a variable of its own
      line(out, "  {} {};", fragmentType(mmaFamily(kernel.backend), *buffer, "Element"), buffer->name);
  for (const Buffer *ring : runningRings())
    line(out, "  const {} *next_{}; // where this thread's next vector comes from", spellElement(ring->type).str(),
         ring->name);
  if (instrument != Instrument::None)
    line(out, "  StageClock<{}> clock;", clockArguments());
  line(out, "}};\n");
}

/// Which lies in front of the workspace.
bool KernelEmitter::hasCounter() const {
  return llvm::any_of(kernel.buffers, [](const std::unique_ptr<Buffer> &buffer) {
    return buffer->space == Space::Global && buffer->type == ElementType::U32;
  });
}

/// Records of all warps of a CTA, behind the counter that its tiles come from.
std::string KernelEmitter::clockArguments() const {
  return fmt::format("{}, {}{}", load ? "kThreads / 32" : "kWarps", instrument == Instrument::Trace,
                     hasCounter() ? ", kRecordAlignment" : "");
}

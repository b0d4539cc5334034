// fagen: what a generated kernel keeps where: shared memory, what is the CTA's, registers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KernelEmitter.h"
#include "splits/SharedKeys.h"

#include "fagen/IR/ExprTypes.h"
#include "fagen/IR/Queries.h"

#include "fagen/Target/MmaInstrs.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/MathExtras.h"

#include <utility>

using namespace fagen;
using namespace fagen::ir;

bool fagen::isHandedOver(const Buffer &buffer) {
  return buffer.type == ElementType::MBarrier || buffer.type == ElementType::U32;
}

std::string fagen::memberOf(const Buffer &buffer) {
  if (buffer.type == ElementType::U32)
    return fmt::format("NextTile {};", buffer.name);
  if (buffer.type == ElementType::MBarrier)
    return fmt::format("Mbarriers<{}> {};", buffer.stages == 1 ? "1" : buffer.stages.str(), buffer.name);
  return fmt::format("{} {}{};", typeOfTile(buffer.name), buffer.name,
                     buffer.isRing ? "[" + buffer.stages.str() + "]" : "");
}

void fagen::emitTileTypes(IndentedStream &out, llvm::ArrayRef<const Buffer *> shared,
                          llvm::function_ref<llvm::StringRef(ElementType)> spell) {
  for (const Buffer *buffer : shared)
    if (!isHandedOver(*buffer))
      line(out, "using {} = SharedTile<{}, {}, {}, Swizzle::{}>;", typeOfTile(buffer->name), spell(buffer->type).str(),
           buffer->rows.str(), buffer->columns.str(), layoutText(buffer->layout).enumerator.str());
}

/// Members that allocate-shared put later than where the one before them ends: where patterns of the engine begin.
static llvm::SmallPtrSet<const Buffer *, 4> membersApart(llvm::ArrayRef<const Buffer *> shared) {
  constexpr uint64_t kOfMembers = 128;
  llvm::SmallPtrSet<const Buffer *, 4> apart;
  uint64_t end = 0;
  for (const Buffer *buffer : shared) {
    if (!buffer->overlays && *buffer->offset > end)
      apart.insert(buffer);
    end = std::max(end, llvm::alignTo(*buffer->offset + buffer->bytes(), kOfMembers));
  }
  return apart;
}

void fagen::emitStorage(IndentedStream &out, const Kernel &kernel, llvm::ArrayRef<const Buffer *> shared,
                        llvm::StringRef ringType, llvm::function_ref<bool(const Buffer &)> isOfRing) {
  const llvm::SmallPtrSet<const Buffer *, 4> apart = membersApart(shared);
  auto member = [&](const Buffer &buffer) {
    return (apart.contains(&buffer) ? "alignas(1024) " : "") + memberOf(buffer);
  };
  std::vector<const Buffer *> rings, overlays;
  for (const Buffer *buffer : shared) {
    if (isOfRing(*buffer))
      rings.push_back(buffer);
    if (buffer->overlays)
      overlays.push_back(buffer);
  }
  if (!rings.empty()) {
    line(out, "\nstruct {} {{", ringType.str());
    for (const Buffer *ring : rings)
      line(out, "  {}", member(*ring));
    line(out, "}};");
  }
  line(out, "\nstruct SharedStorage {{");
  for (const Buffer *buffer : shared) {
    const bool isInRing = llvm::is_contained(rings, buffer);
    if (!isInRing && !buffer->overlays)
      line(out, "  {}", member(*buffer));
    if (!isInRing || buffer != rings.front())
      continue;
    line(out, "{}  {} ring;", overlays.empty() ? "" : "  union {\n  ", ringType.str());
    for (const Buffer *overlay : overlays)
      line(out, "    {}{}", memberOf(*overlay), overlay == overlays.back() ? "\n  };" : "");
  }
  line(out, "}};");
  if (!shared.empty())
    line(out, "static_assert(sizeof(SharedStorage) == {}, \"shared memory is as allocate-shared laid it out\");",
         kernel.sharedBytes);
  out << '\n';
}

void KernelEmitter::emitStorage() {
  const std::vector<const Buffer *> shared = buffersIn(Space::Shared);
  emitTileTypes(out, shared, [&](ElementType type) { return spellElement(type); });
  fagen::emitStorage(out, kernel, shared, "KvRing", [&](const Buffer &buffer) {
    return buffer.isRing && !isHandedOver(buffer) && isOfKeys(kernel, buffer);
  });
}

/// A let with run-time values spelled as the entry function reaches them.
std::string KernelEmitter::letValue(const Expr &value) const {
  const Expr called = spellCalls(kernel, divisors, value, "", [&](const Expr &operand) { return letValue(operand); });
  auto holderOf = [](RunScope scope) -> llvm::StringRef {
    const bool isOfTile = scope == RunScope::Tile || scope == RunScope::Split;
    return scope == RunScope::Launch ? "params" : isOfTile ? "place" : "";
  };
  return spellRunValues(called, holderOf).str();
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

/// The rows that threads copy from: where the first one lies.
std::vector<KernelEmitter::Member> KernelEmitter::membersOfSources() const {
  const std::string ofQueries = kernel.packsHeads() ? "row 0 of the group's first head" : "row 0 of the head";
  const std::string ofKeys = isSplit() ? "the first key's row of the K/V head" : "row 0 of the K/V head";
  std::vector<Member> members;
  std::string before;
  for (const Matrix &source : sources()) {
    const std::string &what = source.at()[1].uses(nameOf(RunValue::KvHead)) ? ofKeys : ofQueries,
                      &tensor = source.tensor().param, first = letValue(firstOf(source, 2));
    const std::string element = spellElement(source.tensor().type).str();
    members.push_back(
        {fmt::format("const {} *{};", element, tensor), what == before ? "likewise" : what,
         fmt::format("head_rows<{4}>(params.{0}, params.{0}_stride, {1}, {2}){3}", tensor, letValue(source.at()[0]),
                     letValue(firstOf(source, 1)),
                     first == "0" ? "" : fmt::format(" + {} * params.{}_stride[2]", first, tensor), element)});
    before = what;
  }
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

/// What the caller gives in addition to attention's parameters.
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

/// In addition to the parameters and the storage: where the CTA stands, and what the form and the lets say of its tile.
std::vector<KernelEmitter::Member> KernelEmitter::membersOfCta() const {
  std::vector<Member> members;
  auto addPlace = [&](const char *name, const char *note) {
    members.push_back({fmt::format("int {};", name), note, fmt::format("place.{}", name)});
  };
  auto addVariable = [&](const std::string &type, const std::string &name, const std::string &note) {
    members.push_back({fmt::format("{} {};", type, name), note, name});
  };
  auto addHeads = [&] {
    addPlace("batch", "of Q, K, V and O");
    addPlace("head", "of Q and O");
    addPlace("kv_head", "of K and V");
  };
  if (load)
    addHeads();
  else
    members = membersOfSources();
  addPlace("row_begin", "first query row");
  if (load)
    addVariable("int", "group_row", "first row of this warp group in the tile");
  else if (mapsNamePlaces())
    addHeads();
  if (isSplit()) {
    addPlace("split_begin", "first key of the split");
    addPlace("split_keys", "how many keys it has");
  }
  if (turns) {
    addVariable("int", "tile", "number of the tile of query rows");
    addVariable("int", "turn", "tiles that this CTA had before");
    addVariable("int", "base", "key tiles of those");
  }
  for (const Scalar &scalar : kernel.scalars)
    addVariable(scalar.isReal ? "float" : "int", scalar.name, "of the form");
  for (const TileDivisor &divisor : divisors)
    addVariable("Divisor", divisor.name, "divides by " + divisor.value.str());
  for (const Let &let : letsOfTile())
    addVariable(typeOf(let), let.name, let.source ? "read for the whole tile" : let.note);
  return members;
}

/// A Cta, its members one below the other.
void KernelEmitter::emitValueOfCta(const std::string &head) {
  const std::string separator = ",\n" + std::string(head.size() + 1, ' ');
  std::string values =
      "params" + (isFormed() ? separator + "form" : "") + separator + "ptx::shared_storage<SharedStorage>()";
  for (const Member &member : membersOfCta())
    values += separator + member.value;
  line(out, "{}{{{}}};", head, values);
}

void KernelEmitter::emitCta() {
  line(out, "/// What all threads of a CTA share.\nstruct Cta {{");
  {
    const Braces scope(out, "};\n", "  const {} &params;\n{}  SharedStorage &shared;", paramsType(),
                       isFormed() ? "  const FormParams &form;\n" : "");
    std::vector<std::pair<std::string, std::string>> lines;
    for (const Member &member : membersOfCta())
      lines.push_back({member.declaration, member.note});
    printAligned(out, lines);
  }
  const std::string warp = !load ? "ptx::warp_index()"
                           : kernel.options.loadWarps
                               ? fmt::format("(ptx::warp_index() - {})", kernel.options.loadWarps->value.str())
                               : fmt::format("(ptx::warp_index() - {})", math.firstWarp);
  if (load && mmaFamily(kernel.backend).isAsynchronous) {
    line(out, "/// First query row of this warp in the tile.");
    line(out, "__device__ __forceinline__ int warp_row() {{ return {} * kWarpRows; }}\n", warp);
  } else {
    line(out, "/// First query row and first key of this warp in the tile.");
    line(out, "__device__ __forceinline__ int warp_row() {{ return {} % kRowWarps * kWarpRows; }}", warp);
    line(out, "__device__ __forceinline__ int warp_key() {{ return {} / kRowWarps * kWarpKeys; }}\n", warp);
  }
  if (turns)
    emitCtaAt();
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
    emitValueOfCta("return ");
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

/// The workspace begins with it.
bool KernelEmitter::hasCounter() const {
  return llvm::any_of(kernel.buffers, [](const std::unique_ptr<Buffer> &buffer) {
    return buffer->space == Space::Global && buffer->type == ElementType::U32;
  });
}

/// The records of all warps of a CTA. They follow the counter that its tiles come from.
std::string KernelEmitter::clockArguments() const {
  return fmt::format("{}, {}{}", load ? "kThreads / 32" : "kWarps", instrument == Instrument::Trace,
                     hasCounter() ? ", kRecordAlignment" : "");
}

// fagen: how threads wait for each other, in CUDA: mbarriers, barriers, turns, fences, and tiles that roles hand over.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "OpEmitter.h"

#include "KernelEmitter.h"

#include "fagen/IR/Queries.h"
#include "fagen/Target/MmaInstrs.h"

using namespace fagen;
using namespace fagen::ir;

std::string OpEmitter::mbarrier(const Operand &operand) const {
  return fmt::format("cta.shared.{}, {}", operand.buffer->name,
                     operand.buffer->isRing ? expression(operand.position) : "0");
}

/// As the text counts warps; the number where one arrives, or the text has no such constants.
std::string OpEmitter::arrivalsAt(const MbarrierInitOp<const Op> &init) const {
  std::string text = std::to_string(init.arrivals());
  if (!measureOf(kernel, Measure::Warps))
    return text;
  for (const Role &of : kernel.roles)
    forEach<ArriveOp>(of.body, [&](ArriveOp<const Op> arrive) {
      if (arrive.bar().buffer != init.bar().buffer)
        return;
      const bool isByWarp = arrive.by() == Actor::Warp, isByGroup = arrive.by() == Actor::Group;
      const int64_t units = isByWarp ? of.warps : isByGroup ? of.warps / kGroupWarps : 1;
      if (units == 1 || init.arrivals() % units != 0 || (init.arrivals() != units && !arrive.cluster()))
        return;
      text = fmt::format("{}{}", init.arrivals() == units ? "" : clusterOf(kernel) + " * ",
                         isByWarp ? "kWarps" : "kWarps / 4");
    });
  return text;
}

/// The tiles of one slot where these are the bytes.
std::string OpEmitter::bytesAt(const ArriveOp<const Op> &arrive) const {
  std::string tiles;
  int64_t bytes = 0;
  for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
    if (fullOf(*buffer) == arrive.bar().buffer) {
      tiles += fmt::format("{}sizeof({})", tiles.empty() ? "" : " + ", typeOfTile(buffer->name));
      bytes += buffer->bytes() / buffer->stages;
    }
  return arrive.bytes() == constant(bytes) ? tiles : expression(arrive.bytes());
}

void OpEmitter::emitArrive(const Op &op) {
  const ArriveOp arrive(op);
  const std::string bar = mbarrier(arrive.bar());
  if (arrive.bytes())
    return line(out, "arrive_expecting({}, {});{}", bar, bytesAt(arrive), noteAfter(op));
  const bool isByOne = arrive.by() == Actor::Group || arrive.by() == Actor::Warp;
  const std::string by = isByOne ? "_by_" + toString(arrive.by()).str() : "";
  if (arrive.cluster())
    return line(out, "arrive_in_cluster{}<{}>({});{}", by, clusterOf(kernel), bar, noteAfter(op));
  line(out, "arrive{}({});{}", by, bar, noteAfter(op));
}

/// All slots of the ring, of which the op is the first one's.
void OpEmitter::emitRingInit(const Op &op) {
  const MbarrierInitOp init(op);
  line(out, "mbarrier_init(cta.shared.{}, {});", init.bar().buffer->name, arrivalsAt(init));
}

void OpEmitter::emitSlotInit(const Op &op) {
  const MbarrierInitOp init(op);
  const Operand &bar = init.bar();
  line(out, "ptx::mbarrier_init(cta.shared.{}.address({}), {});", bar.buffer->name, bar.position.str(),
       arrivalsAt(init));
}

static const Role &roleOf(const Kernel &kernel, const Op &op) {
  return *llvm::find_if(kernel.roles, [&](const Role &role) {
    bool found = false;
    walk(role.body, [&](const Op &each) { found |= &each == &op; });
    return found;
  });
}

/// Before the loop over tiles and after it one group does this, by its number among all groups of the CTA.
void OpEmitter::emitTurn(const Op &op) {
  std::optional<IndentedStream::Scope> scope;
  std::string row = "cta.group_row";
  if (op.has(Attr::Group)) {
    const int64_t group = op.integer(Attr::Group);
    line(out, "if (ptx::warp_group_index() == {})", group + roleOf(kernel, op).firstWarp / kGroupWarps);
    scope.emplace(out);
    callStandsHere();
    row = fmt::format("{} * kGroupRows", group);
  }
  const std::string groups =
      measureOf(kernel, Measure::Warps) ? "kWarps / 4" : std::to_string(op.integer(Attr::Groups));
  line(out, "{}<{}>({}, {});{}", opInfo(op.kind).name.str(), groups, op.integer(Attr::Id), row, noteAfter(op));
}

void OpEmitter::emitFence(const Op &op) {
  switch (FenceOp(op).kind()) {
  case FenceKind::Mma:
    return line(out, "ptx::{}_fence();", mmaFamily(kernel.backend).async.str());
  case FenceKind::MbarrierInit:
    return line(out, "ptx::mbarrier_init_fence();");
  case FenceKind::AsyncProxy:
    return line(out, "ptx::fence_proxy_async();");
  }
}

std::string OpEmitter::tileOf(const char *ticket, const char *params) const {
  const std::optional<TurnOrder> &turns = kernel.grid.turns;
  if (!turns)
    return ticket;
  return fmt::format("longest_tile_first<kTileRows, {}{}>({}, {})", turns->rows.str(),
                     turns->tiles ? ", " + turns->tiles->str() : "", params, ticket);
}

/// A thread keeps what it drew, and the number that it hands over or takes, in variables of those names.
void OpEmitter::emitHandover(const Op &op) {
  if (op.kind == OpKind::FetchTile)
    return line(out, "const unsigned drawn = draw<kTileRows>(cta.params);");
  if (const auto take = dynCast<TakeTileOp>(op))
    return line(out, "const int next = take_tile(cta.shared.{});", take->src().buffer->name);
  line(out, "const int next = {};", tileOf("ticket_of<kTileRows>(cta.params, drawn)", "cta.params"));
  callStandsHere();
  line(out, "hand_tile(cta.shared.{}, next);", HandTileOp(op).dst().buffer->name);
}

void OpEmitter::emitBarrier(const Op &op) {
  const BarrierOp barrier(op);
  if (barrier.scope() != BarrierScope::Named)
    return line(out, "{}{}_barrier();",
                barrier.scope() == BarrierScope::Cluster ? "" : "ptx::", toString(barrier.scope()).str());
  const int64_t warps = *barrier.warps(), firstWarp = *barrier.firstWarp(), groups = barrier.groups();
  std::string id = std::to_string(*barrier.id());
  if (mmaFamily(kernel.backend).unitWarps > 1 && groups > 1) {
    id += " + cta.group_row / kGroupRows"; // the same for all threads, as a register of each is not
  } else if (groups > 1) {                 // each group has its own barrier
    const std::string warp = firstWarp == 0 ? "ptx::warp_index()" : fmt::format("(ptx::warp_index() - {})", firstWarp);
    id += barrier.interleaved() ? fmt::format(" + {} % {}", warp, groups)
                                : fmt::format(" + {} / {}", warp, warps / groups);
  }
  line(out, "ptx::named_barrier({}, {});", id, 32 * warps / groups);
}

// fagen: pass stage-output: results leave through shared memory, while the next tile is worked on.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Q gets a second slot, so that the next tile's Q comes while this one is used. Behind a tile's last product nobody
// reads its slot, and O has no more columns than Q: each group of four warps writes its rows of O over its own rows of
// Q, whole matrices at once, and one of its threads asks for a bulk store.
//
//   turn t     first step
//              bulk_wait; arrive q_empty[t]     the store of turn t - 1 has read its slot: Q of turn t + 1 may come
//              other steps
//              stage_output; fence async_proxy; barrier of the group; bulk_store; bulk_commit
//   at last    bulk_wait
//
// The store leaves out rows behind the last one, and needs neither addresses nor shuffles of the threads. A group waits
// for no other: its products read no rows of Q but its own.

#include "fagen/Passes/Passes.h"

#include "fagen/IR/ExprAnalysis.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

using Ops = std::vector<std::unique_ptr<Op>>;

Op &append(Ops &ops, OpKind kind, const Location &location, llvm::StringRef note = {}) {
  ops.push_back(std::make_unique<Op>(kind));
  ops.back()->location = location;
  ops.back()->note = note.str();
  return *ops.back();
}

Op *findTurns(Role &role) {
  auto found = llvm::find_if(role.body.ops, [](const auto &op) { return op->has("carry"); });
  return found == role.body.ops.end() ? nullptr : found->get();
}

class OutputStager {
public:
  OutputStager(Kernel &kernel, Role &load, Role &math)
      : kernel(kernel), load(load), math(math), q(kernel.buffer("q")), qFull(kernel.buffer("q_full")),
        qEmpty(kernel.buffer("q_empty")), slots(kernel.constant("kQuerySlots")) {}

  void run() {
    for (Buffer *buffer : {q, qFull}) {
      buffer->isRing = true;
      buffer->stages = slots;
    }
    for (Role *role : {&load, &math})
      placeInSlots(role->body);
    initialise();
    stageTiles(findTurns(math)->body);
    appendWait(math.body.ops);
  }

private:
  /// Q of a turn lies in the turn's slot.
  void placeInSlots(Block &block) {
    for (std::unique_ptr<Op> &op : block.ops) {
      placeInSlots(op->body);
      for (Operand &operand : op->operands)
        if (operand.buffer == q)
          operand.position = variable("turn");
    }
  }

  /// An mbarrier for each slot, and an arrival of each group.
  void initialise() {
    Ops ops;
    for (std::unique_ptr<Op> &op : load.body.ops) {
      const bool isInit = op->kind == OpKind::MbarrierInit;
      if (isInit && op->operand("bar").buffer == qEmpty)
        op->attributes["arrivals"] = int64_t(math.warps / kGroupWarps);
      ops.push_back(std::move(op));
      if (isInit && ops.back()->operand("bar").buffer == qFull)
        for (unsigned slot = 1; slot < slots; ++slot) {
          const Op &first = *ops[ops.size() - slot];
          Op &more = append(ops, OpKind::MbarrierInit, first.location);
          more.operands = {{qFull, constant(slot)}};
          more.attributes = first.attributes;
        }
    }
    load.body.ops = std::move(ops);
  }

  static void appendWait(Ops &ops, const Location &location = {}) {
    append(ops, OpKind::BulkWait, location).attributes = {{"pending", int64_t(0)}, {"by", std::string("group")}};
  }

  void stageTiles(Block &tiles) {
    Ops ops;
    bool isReleased = false;
    for (std::unique_ptr<Op> &op : tiles.ops) {
      const bool isLoop = op->kind == OpKind::Loop;
      if (op->kind == OpKind::Store)
        stage(*op, ops);
      else if (op->kind != OpKind::Arrive || op->operand("bar").buffer != qEmpty)
        ops.push_back(std::move(op));
      if (isLoop && !std::exchange(isReleased, true))
        release(ops);
    }
    tiles.ops = std::move(ops);
  }

  void release(Ops &ops) const {
    appendWait(ops, qEmpty->location);
    Op &arrive = append(ops, OpKind::Arrive, qEmpty->location,
                        "stage-output: the last tile's results have left the slot of the next Q");
    arrive.operands = {{qEmpty, variable("turn")}};
    arrive.attributes["by"] = std::string("group");
  }

  void stage(const Op &store, Ops &ops) const {
    append(ops, OpKind::StageOutput, store.location).operands = {{q, variable("turn")}, store.operand("o")};
    append(ops, OpKind::Fence, store.location).attributes["kind"] = std::string("async_proxy");
    addBarrier(append(ops, OpKind::Barrier, store.location, "stage-output: the rows of the group are there"));
    Op &bulk = append(ops, OpKind::BulkStore, store.location);
    bulk.operands = {store.operand("dst"), {q, variable("turn")}};
    bulk.attributes = store.attributes;
    bulk.attributes["by"] = std::string("group");
    append(ops, OpKind::BulkCommit, store.location).attributes["by"] = std::string("group");
  }

  void addBarrier(Op &barrier) const {
    barrier.attributes = {{"scope", std::string("named")},
                          {"id", kGroupBarrier},
                          {"first_warp", int64_t(math.firstWarp)},
                          {"warps", int64_t(math.warps)}};
    if (math.warps > kGroupWarps)
      barrier.attributes["groups"] = int64_t(math.warps / kGroupWarps);
  }

  Kernel &kernel;
  Role &load, &math;
  Buffer *const q, *const qFull, *const qEmpty;
  const unsigned slots;
};

} // namespace

bool fagen::stageOutput(Kernel &kernel, PassContext &) {
  if (!kernel.hasConstant("kQuerySlots") || kernel.roles.size() != 2 || !findTurns(kernel.roles.back()))
    return false;
  OutputStager(kernel, kernel.roles[0], kernel.roles[1]).run();
  return true;
}

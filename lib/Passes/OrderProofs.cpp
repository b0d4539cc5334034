// fagen: what was proven of kernels, by what they say to a proof.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The proof is a function of the ops, buffers, lets and constants alone, so kernels that are equal in these have equal
// proofs: nothing is taken on trust. Of roles it is one of less: AccessTable says all that sizes and offsets of tiles
// mean. Variants are lowered side by side, hence the locks.

#include "OrderProofs.h"

#include "fagen/Analysis/Order.h"

#include "fagen/IR/OpClasses.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <array>

using namespace fagen;
using namespace fagen::ir;
using llvm::StringRef;

namespace {

struct Proofs {
  std::mutex mutex;
  llvm::StringMap<std::unique_ptr<OrderProof>> byKey;
};

Proofs &proofs() {
  static Proofs instance;
  return instance;
}

/// What a kernel says to a proof, as a kernel: two that say the same are printed the same.
class ReducedKernel {
public:
  explicit ReducedKernel(const Kernel &kernel) {
    reduced.target = kernel.target;
    reduced.backend = kernel.backend;
    reduced.threads = kernel.threads;
    reduced.options = kernel.options;
    reduced.grid = kernel.grid;
    reduced.scalars = kernel.scalars;
    reduced.sizes = kernel.sizes;
    reduced.constants = kernel.constants;
    reduced.lets = kernel.lets;
    reduced.sharedBytes = kernel.sharedBytes;
    for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
      addBuffer(*buffer);
    for (const std::unique_ptr<Buffer> &buffer : reduced.buffers)
      connect(*buffer);
    for (const Role &role : kernel.roles)
      addRole(role);
  }

  /// Without what only says how large tiles are, and where they lie: shapes of buffers, and their constants where
  /// nothing else names them; offsets; bytes that are announced.
  void dropSizes() {
    reduced.sharedBytes = 0;
    for (const std::unique_ptr<Buffer> &buffer : reduced.buffers)
      dropSizes(*buffer);
    for (Role &role : reduced.roles)
      forEach<ArriveOp>(role.body, [](ArriveOp<> arrive) {
        if (arrive.bytes() && arrive.bytes().kind() == ExprKind::Constant)
          arrive.setBytes(constant(0));
      });
    dropConstants();
  }

  std::string text() const {
    std::string text;
    llvm::raw_string_ostream os(text);
    os.SetBufferSize(1 << 14); // else it takes each piece on its own
    printBare(reduced, os);
    os.flush();
    return text;
  }

private:
  Buffer *known(const Buffer *buffer) const { return buffer ? reduced.buffer(buffer->name) : nullptr; }

  /// Types of one size are one type.
  void addBuffer(const Buffer &buffer) {
    Buffer &added = reduced.addBuffer(buffer);
    if (added.type == ElementType::BF16)
      added.type = ElementType::F16;
  }

  void connect(Buffer &buffer) const {
    buffer.overlays = known(buffer.overlays);
    if (buffer.guard) {
      buffer.guard->full = known(buffer.guard->full);
      buffer.guard->empty = known(buffer.guard->empty);
    }
    if (buffer.map)
      buffer.map->base = known(buffer.map->base);
  }

  void addRole(const Role &role) {
    Role &added = reduced.roles.emplace_back();
    added.name = role.name;
    added.firstWarp = role.firstWarp;
    added.warps = role.warps;
    added.grid = role.grid;
    added.registers = role.registers;
    for (const std::unique_ptr<Op> &op : role.body.ops)
      added.body.ops.push_back(clone(*op));
    walk(added.body, [this](Op &op) { reduce(op); });
  }

  /// What warps vote on is left out, since a proof takes either outcome to happen. Real numbers of maps say what
  /// elements become; who reads them when, and what the ledger calls the op, says the rest.
  void reduce(Op &op) const {
    for (Operand &operand : op.operands)
      operand.buffer = known(operand.buffer);
    if (op.kind == OpKind::Vote)
      for (Attr attr : {Attr::Test, Attr::Apart})
        op.attributes.erase(attr);
    if (const auto map = dynCast<MapOp>(op)) {
      unsigned reals = 0; // each has a name, so that nothing cancels
      map->setValue(map->value().rewritten([&](const Expr &node) {
        return node.kind() == ExprKind::Real ? variable("#" + std::to_string(reals++)) : Expr();
      }));
    }
  }

  /// Where rows of a view end is no size of a tile.
  static void dropSizes(Buffer &buffer) {
    buffer.rows = buffer.columns = 0;
    buffer.offset.reset();
    for (Expr &size : llvm::MutableArrayRef(buffer.shape).drop_front(buffer.map ? 1 : 0))
      size = constant(0);
  }

  void dropConstants() {
    llvm::StringSet<> named;
    auto use = [&](const Expr &expr) {
      if (expr)
        expr.forEachVariable([&](StringRef name) { named.insert(name); });
    };
    Options::forEach(reduced.options, [&](StringRef, const auto &option) {
      if constexpr (std::is_same_v<decltype(option->value), Count>)
        use(option ? option->value.expr() : Expr());
    });
    for (const GridIndex &index : reduced.grid.indices)
      use(index.extent);
    if (const std::optional<TurnOrder> &turns = reduced.grid.turns)
      llvm::for_each(std::array{turns->rows.expr(), turns->tiles.value_or(0).expr(), turns->rowsOfRun}, use);
    for (const std::unique_ptr<Buffer> &buffer : reduced.buffers) {
      use(buffer->stages.expr());
      llvm::for_each(buffer->shape, use);
      if (buffer->map)
        llvm::for_each(buffer->map->at, use);
    }
    for (const Let &let : reduced.lets) {
      use(let.value);
      if (let.source)
        llvm::for_each(let.source->at, use);
      if (let.judged)
        llvm::for_each(std::array{let.judged->first, let.judged->tiles, let.judged->seen, let.judged->whole}, use);
    }
    for (const Role &role : reduced.roles)
      walk(role.body, [&](const Op &op) { forEachExpr(op, use); });
    llvm::erase_if(reduced.constants, [&](const Constant &constant) { return !named.contains(constant.name); });
  }

  Kernel reduced;
};

} // namespace

std::string fagen::proofKey(const Kernel &kernel) { return ReducedKernel(kernel).text(); }

std::string fagen::proofKeyOfRoles(const Kernel &kernel) {
  ReducedKernel reducedKernel(kernel);
  reducedKernel.dropSizes();
  return reducedKernel.text() + sizesSeenBetweenRoles(kernel);
}

OrderProof &fagen::proofOf(const std::string &key) {
  const std::lock_guard lock(proofs().mutex);
  std::unique_ptr<OrderProof> &proof = proofs().byKey[key];
  if (!proof)
    proof = std::make_unique<OrderProof>();
  return *proof;
}

OrderProof &fagen::proofOfRoles(const Kernel &kernel) {
  const std::string key = proofKey(kernel);
  OrderProof &proof = proofOf(key);
  const std::lock_guard lock(proof.mutex);
  if (!proof.ofRoles)
    proof.ofRoles = &proofOf(proofKeyOfRoles(kernel));
  return *proof.ofRoles;
}

// fagen: what was proven of kernels, by what they say to a proof.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The proof is a function of the ops, buffers, lets and constants alone, so kernels that are equal in these have equal
// proofs: nothing is taken on trust. Of roles it is one of less: AccessTable says all that sizes and offsets of tiles
// mean. Variants are lowered side by side, hence the locks.

#include "OrderProofs.h"

#include "fagen/Analysis/Order.h"

#include "fagen/IR/IR.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/bit.h"

#include <type_traits>

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

/// What a kernel says to a proof, from its structure. Everything has an end of its own, numbers by their last byte,
/// lists and names by how many there are: kernels with the same key are the same here.
class KeyWriter {
public:
  enum class Sizes : uint8_t {
    Kept,
    /// Without what only says how large tiles are, and where they lie: shapes of buffers, and their constants where
    /// nothing else names them; offsets; bytes that are announced.
    Dropped
  };

  KeyWriter(const Kernel &kernel, Sizes sizes) : kernel(kernel), hasSizes(sizes == Sizes::Kept) {
    for (const auto &[place, buffer] : llvm::enumerate(kernel.buffers))
      places[buffer.get()] = unsigned(place) + 1;
  }

  std::string run() {
    key.reserve(1 << 12);
    name(kernel.backend);
    number(kernel.threads);
    if (hasSizes)
      number(int64_t(kernel.sharedBytes));
    addOptions();
    addSizes();
    addGrid();
    list(kernel.buffers, [this](const std::unique_ptr<Buffer> &buffer) { add(*buffer); });
    list(kernel.lets, [this](const Let &let) { add(let); });
    list(kernel.roles, [this](const Role &role) { add(role); });
    addConstants();
    return std::move(key);
  }

private:
  void number(int64_t value) {
    uint64_t rest = (uint64_t(value) << 1) ^ uint64_t(value >> 63); // small ones are short, below 0 too
    for (; rest >= 0x80; rest >>= 7)
      key += char(rest | 0x80);
    key += char(rest);
  }
  void name(StringRef text) {
    number(int64_t(text.size()));
    key += text;
  }
  template <typename List, typename Visitor> void list(const List &values, Visitor visit) {
    number(int64_t(std::size(values)));
    llvm::for_each(values, visit);
  }
  void expressions(llvm::ArrayRef<Expr> values) {
    list(values, [this](const Expr &value) { add(value); });
  }

  void add(const Expr &expr) {
    if (!expr)
      return number(0);
    number(1 + int64_t(expr.kind()));
    switch (expr.kind()) {
    case ExprKind::Constant:
      return number(expr.value());
    case ExprKind::Real:
      return hasReals ? number(int64_t(llvm::bit_cast<uint32_t>(expr.realValue()))) : void();
    case ExprKind::Variable:
      if (!hasSizes)
        named.insert(expr.name());
      return name(expr.name());
    default:
      return expressions(expr.operands());
    }
  }
  void add(const Count &count) {
    number(count.number());
    add(count.expr());
  }
  void buffer(const Buffer *of) { number(places.lookup(of)); }

  void addOptions() {
    Options::forEach(kernel.options, [this](StringRef, const auto &option) {
      number(option.has_value());
      if constexpr (std::is_same_v<decltype(option->value), Count>)
        option ? add(option->value) : void();
      else
        option ? number(int64_t(option->value)) : void();
    });
  }

  void addSizes() {
    list(kernel.sizes, [this](const std::string &size) {
      name(size);
      const Interval range = kernel.rangeOfSize(size);
      number(range.low);
      number(range.high);
    });
    list(kernel.scalars, [this](const Scalar &scalar) {
      name(scalar.name);
      number(scalar.isReal);
      number(scalar.low);
      number(scalar.high);
    });
  }

  void addGrid() {
    const CtaGrid &grid = kernel.grid;
    for (const int64_t value : {int64_t(grid.unit), int64_t(grid.isPersistent), int64_t(grid.isDrawn),
                                int64_t(grid.cluster), int64_t(grid.order), int64_t(grid.split.has_value())})
      number(value);
    if (grid.split) {
      number(grid.split->number);
      number(grid.split->countsKeys);
    }
    number(grid.turns.has_value());
    if (grid.turns) {
      add(grid.turns->rows);
      add(grid.turns->tiles ? grid.turns->tiles->expr() : Expr());
      add(grid.turns->rowsOfRun);
    }
    name(grid.listed);
    list(grid.indices, [this](const GridIndex &index) {
      name(index.name);
      add(index.extent);
    });
  }

  /// Types of one size are one type. Where rows of a view end is no size of a tile.
  void add(const Buffer &buffer) {
    name(buffer.name);
    name(buffer.param);
    const ElementType type = buffer.type == ElementType::BF16 ? ElementType::F16 : buffer.type;
    for (const int64_t value : {int64_t(buffer.space), int64_t(type), int64_t(buffer.isRing), int64_t(buffer.isStrided),
                                int64_t(buffer.isAscending), int64_t(buffer.isDistinct), int64_t(buffer.arePlaces),
                                int64_t(buffer.isConstant), int64_t(buffer.layout), int64_t(buffer.isInQuads),
                                int64_t(buffer.values.has_value())})
      number(value);
    if (buffer.values) {
      number(buffer.values->low);
      number(buffer.values->high);
    }
    add(buffer.stages);
    if (hasSizes) {
      add(buffer.rows);
      add(buffer.columns);
      number(buffer.offset ? 1 + int64_t(*buffer.offset) : 0);
    }
    const llvm::ArrayRef<Expr> shape = buffer.shape;
    number(int64_t(shape.size()));
    expressions(hasSizes ? shape : shape.take_front(buffer.map ? 1 : 0));
    this->buffer(buffer.overlays);
    number(buffer.guard.has_value());
    if (buffer.guard)
      add(*buffer.guard);
    number(buffer.map.has_value());
    if (buffer.map)
      add(*buffer.map);
  }
  void add(const Guard &guard) {
    buffer(guard.full);
    number(guard.filledBy ? 1 + int64_t(*guard.filledBy) : 0);
    buffer(guard.empty);
    number(int64_t(guard.leftBy));
    number(guard.lag);
  }
  void add(const AddressMap &map) {
    buffer(map.base);
    for (const std::string &variable : {map.index, map.row, map.column})
      name(variable);
    expressions(map.at);
  }

  void add(const Let &let) {
    name(let.name);
    add(let.value);
    number(let.source.has_value());
    if (let.source) {
      buffer(let.source->buffer);
      expressions(let.source->at);
      number(let.source->low);
      number(let.source->high);
    }
    number(let.judged.has_value());
    if (let.judged) {
      expressions({let.judged->first, let.judged->tiles, let.judged->seen, let.judged->whole});
      name(let.judged->low);
      name(let.judged->high);
    }
  }

  void add(const Role &role) {
    name(role.name);
    const WarpGrid grid = role.grid.value_or(WarpGrid{0, 0});
    for (const unsigned value : {role.firstWarp, role.warps, grid.rows, grid.columns, role.registers})
      number(value);
    add(role.body);
  }

  void add(const Block &block) {
    list(block.ops, [this](const std::unique_ptr<Op> &op) { add(*op); });
  }

  void add(const Op &op) {
    number(int64_t(op.kind));
    list(op.operands, [this](const Operand &operand) {
      buffer(operand.buffer);
      add(operand.position);
    });
    for (const auto &[attribute, value] : op.attributes)
      if (isSeen(op, attribute)) {
        number(1 + int64_t(attribute));
        add(op, attribute, value);
      }
    number(0);
    add(op.body);
  }

  /// What warps vote on is left out, since a proof takes either outcome to happen.
  static bool isSeen(const Op &op, Attr attribute) {
    return attribute != Attr::About &&
           (op.kind != OpKind::Vote || (attribute != Attr::Test && attribute != Attr::Apart));
  }

  void add(const Op &op, Attr attribute, const Attribute &value) {
    if (const int64_t *integer = std::get_if<int64_t>(&value))
      return number(*integer);
    if (const std::string *text = std::get_if<std::string>(&value))
      return name(*text);
    const Expr &expr = std::get<Expr>(value);
    const bool isAnnounced = op.kind == OpKind::Arrive && attribute == Attr::Bytes && expr.kind() == ExprKind::Constant;
    // Real numbers of maps say what elements become; who reads them when, and what the ledger calls the op, says the
    // rest.
    hasReals = op.kind != OpKind::Map || attribute != Attr::Value;
    add(isAnnounced && !hasSizes ? constant(0) : expr);
    hasReals = true;
  }

  /// Last: by then it is known which are named.
  void addConstants() {
    for (const Constant &constant : kernel.constants)
      if (hasSizes || named.contains(constant.name)) {
        name(constant.name);
        number(constant.value);
      }
    number(-1); // no name has so many characters
  }

  const Kernel &kernel;
  const bool hasSizes;
  bool hasReals = true;
  llvm::DenseMap<const Buffer *, unsigned> places; ///< from 1
  llvm::StringSet<> named;
  std::string key;
};

} // namespace

std::string fagen::proofKey(const Kernel &kernel) { return KeyWriter(kernel, KeyWriter::Sizes::Kept).run(); }

std::string fagen::proofKeyOfRoles(const Kernel &kernel) {
  return KeyWriter(kernel, KeyWriter::Sizes::Dropped).run() + sizesSeenBetweenRoles(kernel);
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

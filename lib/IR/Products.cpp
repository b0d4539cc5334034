// fagen: products of matrices, in rows, columns and sums, and which instruction does them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/Products.h"

#include "fagen/IR/Names.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/Twine.h"

using namespace fagen;
using namespace fagen::ir;
using llvm::Twine;

template <typename P> static Product productIn(P op) {
  return {.acc = op.acc().buffer,
          .a = op.a().buffer,
          .b = op.b().buffer,
          .form = op.form(),
          .accumulates = op.accumulate() != 0,
          .first = unsigned(op.first())};
}

std::optional<Product> ir::asProduct(const Op &op) {
  if (const auto mma = dynCast<MmaOp>(op)) {
    Product product = productIn(*mma);
    product.sumsInF16 = mma->sums().has_value();
    return product;
  }
  if (const auto issue = dynCast<MmaIssueOp>(op)) {
    Product product = productIn(*issue);
    product.isAsynchronous = true;
    return product;
  }
  return std::nullopt;
}

/// Nothing for types that no product has.
static std::optional<DType> dtypeOf(ElementType type) {
  switch (type) {
  case ElementType::F16:
    return DType::F16;
  case ElementType::BF16:
    return DType::BF16;
  case ElementType::E4M3:
    return DType::E4M3;
  case ElementType::F32:
    return DType::F32;
  case ElementType::E5M2:
  case ElementType::U32:
  case ElementType::MBarrier:
  case ElementType::I32:
  case ElementType::U8:
  case ElementType::Bit:
    break;
  }
  return std::nullopt;
}

bool ir::widensRight(const Product &product) {
  const ElementType left = product.a->type, right = product.b->type;
  return (left == ElementType::F16 || left == ElementType::BF16) &&
         (right == ElementType::E4M3 || right == ElementType::E5M2);
}

const MmaInstrInfo *ir::instructionOf(const Kernel &kernel, const Product &product) {
  const std::optional<DType> operand = dtypeOf((widensRight(product) ? product.a : product.b)->type),
                             sums = product.sumsInF16 ? DType::F16 : dtypeOf(product.acc->type);
  const std::optional<Mma> family = parseMma(kernel.backend);
  if (!family || !operand || !sums)
    return nullptr;
  return findMmaInstr(*family, *operand, *sums);
}

/// Which fragments have their columns in quads, and must.
static std::string whyNotInOrder(const Product &product, bool widens) {
  const bool ofRight = widens && product.takesRightTransposed(), ofSums = widens && !product.takesRightTransposed();
  if (widens && (product.takesLeftTransposed() || product.sumsInF16))
    return "%" + product.b->name + " is widened, which products of form atb and sums in f16 do not do";
  for (const auto &[fragment, isInQuads] : {std::pair(product.a, ofRight), {product.acc, ofSums}})
    if (fragment->space == Space::Fragment && fragment->isInQuads != isInQuads)
      return "%" + fragment->name +
             (isInQuads ? " has its columns in pairs; this product takes quads"
                        : " has its columns in quads; this product takes pairs");
  return {};
}

std::string ir::whyNoInstruction(const Kernel &kernel, const Product &product) {
  const MmaInstrInfo *const instr = instructionOf(kernel, product);
  auto name = [](const Buffer *buffer) { return "%" + buffer->name; };
  const bool isLeftOfSums = instr && instr->leftMayBeSums && dtypeOf(product.a->type) == instr->accum;
  const bool widens = widensRight(product);
  if (widens && !mmaFamily(kernel.backend).widensRight)
    return (kernel.backend + " widens no operand; " + name(product.b) + " is of " + toString(product.b->type) + ", " +
            name(product.a) + " of " + toString(product.a->type))
        .str();
  if (const std::string why = whyNotInOrder(product, widens); !why.empty())
    return why;
  if (product.a->type != product.b->type && !isLeftOfSums && !widens)
    return (name(product.a) + " is of " + toString(product.a->type) + ", " + name(product.b) + " of " +
            toString(product.b->type) + "; operands have one type")
        .str();
  if (!instr || !instr->implemented)
    return (kernel.backend + " has no product of " + toString(product.b->type) + " with sums in " +
            (product.sumsInF16 ? "f16" : toString(product.acc->type)))
        .str();
  const bool isLeftShared = product.a->space == Space::Shared;
  if (isLeftShared ? !instr->leftInShared : !instr->leftInRegisters)
    return name(product.a) + " is in " + (isLeftShared ? "shared memory" : "registers") + ", where " + kernel.backend +
           " takes no left operand";
  if (product.takesLeftTransposed() && !isLeftShared)
    return "form atb takes its left operand from shared memory; " + name(product.a) + " is in registers";
  if (!instr->hasMajors && (product.takesLeftTransposed() || !product.takesRightTransposed()))
    return ("products of " + toString(product.b->type) +
            " read rows that run along what is summed over, as form abt "
            "has them; the form is " +
            toString(product.form))
        .str();
  return {};
}

namespace {

/// Which buffers are made of which, products left out.
class Makings {
public:
  explicit Makings(const Block &block) {
    walk(block, [&](const Op &op) {
      if (!asProduct(op))
        add(op);
    });
  }

  llvm::DenseSet<const Buffer *> madeOf(const Buffer *first) const {
    llvm::DenseSet<const Buffer *> made = {first};
    llvm::SmallVector<const Buffer *, 8> open = {first};
    while (!open.empty())
      for (const Buffer *next : uses.lookup(open.pop_back_val()))
        if (made.insert(next).second)
          open.push_back(next);
    return made;
  }

private:
  /// What bulk copies fill is theirs, though results may leave through it.
  static bool isFilledByCopies(const Buffer &buffer) { return buffer.guard && !buffer.guard->filledBy; }

  void add(const Op &op) {
    const auto &infos = opInfo(op.kind).operands;
    for (size_t to = 0; to != op.operands.size(); ++to) {
      const Buffer *const made = op.operands[to].buffer;
      if (!made || infos[to].effect == Effect::Read || isFilledByCopies(*made))
        continue;
      for (size_t from = 0; from != op.operands.size(); ++from)
        if (const Buffer *const of = op.operands[from].buffer; of && from != to && infos[from].effect != Effect::Write)
          uses[of].push_back(made);
    }
  }

  llvm::DenseMap<const Buffer *, llvm::SmallVector<const Buffer *, 4>> uses;
};

} // namespace

llvm::DenseSet<const Op *> ir::fedProducts(const Block &block) {
  const Makings makings(block);
  llvm::DenseSet<const Op *> fed;
  walk(block, [&](const Op &from) {
    const std::optional<Product> product = asProduct(from);
    if (!product)
      return;
    const llvm::DenseSet<const Buffer *> made = makings.madeOf(product->acc);
    walk(block, [&](const Op &to) {
      if (const std::optional<Product> other = asProduct(to);
          other && (made.contains(other->a) || made.contains(other->b)))
        fed.insert(&to);
    });
  });
  return fed;
}

llvm::StringRef ir::functionOf(const Kernel &kernel, const Product &product) {
  const MmaFamilyInfo &family = mmaFamily(kernel.backend);
  switch (product.form) {
  case MmaForm::Abt:
    return product.accumulates ? family.addAbt : family.abt;
  case MmaForm::Ab:
    return product.accumulates ? family.addAb : family.ab;
  case MmaForm::Atb:
    return product.accumulates ? family.addAtb : family.atb;
  }
  return {};
}

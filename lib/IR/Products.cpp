// fagen: products of matrices, in rows, columns and sums, and which instruction does them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/Products.h"

#include "fagen/IR/Names.h"

using namespace fagen;
using namespace fagen::ir;
using llvm::Twine;

template <typename P> static Product productIn(P op) {
  return {.acc = op.acc().buffer,
          .a = op.a().buffer,
          .b = op.b().buffer,
          .form = op.form(),
          .accumulates = op.accumulate() != 0};
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
  case ElementType::U32:
  case ElementType::MBarrier:
  case ElementType::I32:
  case ElementType::U8:
  case ElementType::Bit:
    break;
  }
  return std::nullopt;
}

const MmaInstrInfo *ir::instructionOf(const Kernel &kernel, const Product &product) {
  const std::optional<DType> operand = dtypeOf(product.b->type),
                             sums = product.sumsInF16 ? DType::F16 : dtypeOf(product.acc->type);
  const std::optional<Mma> family = parseMma(kernel.backend);
  if (!family || !operand || !sums)
    return nullptr;
  return findMmaInstr(*family, *operand, *sums);
}

std::string ir::whyNoInstruction(const Kernel &kernel, const Product &product) {
  const MmaInstrInfo *const instr = instructionOf(kernel, product);
  auto name = [](const Buffer *buffer) { return "%" + buffer->name; };
  const bool isLeftOfSums = instr && instr->leftMayBeSums && dtypeOf(product.a->type) == instr->accum;
  if (product.a->type != product.b->type && !isLeftOfSums)
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

// fagen: IR accessors, the builder and the walk.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/OpClasses.h"
#include "fagen/IR/RunValues.h"
#include "fagen/IR/Verifier.h"

#include "fagen/device/tile/layout.h"

#include "llvm/ADT/SmallPtrSet.h"

#include <cassert>

using namespace fagen;
using namespace fagen::ir;
using llvm::StringRef;

unsigned ir::sizeOf(ElementType type) {
  switch (type) {
  case ElementType::F16:
  case ElementType::BF16:
    return 2;
  case ElementType::F32:
  case ElementType::U32:
  case ElementType::I32:
  case ElementType::Bit:
    return 4;
  case ElementType::U8:
  case ElementType::E4M3:
  case ElementType::E5M2:
    return 1;
  case ElementType::MBarrier:
    return 8;
  }
  return 0;
}

static_assert(device::Swizzle(Layout::RowMajor) == device::Swizzle::kNone &&
              device::Swizzle(Layout::Xor) == device::Swizzle::kXor &&
              device::Swizzle(Layout::Padded) == device::Swizzle::kPad);

uint64_t Buffer::stageBytes() const { return device::tile_bytes(device::Swizzle(layout), rows, columns, sizeOf(type)); }

int64_t Op::integer(Attr attribute) const {
  assert(has(attribute) && "the op lacks this attribute");
  return std::get<int64_t>(attributes.find(attribute)->second);
}

StringRef Op::text(Attr attribute) const {
  assert(has(attribute) && "the op lacks this attribute");
  return std::get<std::string>(attributes.find(attribute)->second);
}

const Expr &Op::expr(Attr attribute) const {
  assert(has(attribute) && "the op lacks this attribute");
  return std::get<Expr>(attributes.find(attribute)->second);
}

Buffer *Kernel::buffer(StringRef name) const {
  for (const std::unique_ptr<Buffer> &buffer : buffers)
    if (buffer->name == name)
      return buffer.get();
  return nullptr;
}

bool Kernel::packsHeads() const {
  return llvm::any_of(buffers, [](const std::unique_ptr<Buffer> &buffer) {
    return buffer->map &&
           llvm::any_of(buffer->map->at, [](const Expr &at) { return at.uses(nameOf(RunValue::HeadsPerKv)); });
  });
}

Interval Kernel::rangeOfSize(StringRef size) const {
  const auto range = sizeRanges.find(size.str());
  return range == sizeRanges.end() ? Interval{0, kMostOfSize} : range->second;
}

static bool isTaken(const Kernel &kernel, StringRef name) {
  auto isNamed = [&](const auto &thing) { return thing.name == name; };
  bool isVariable = false;
  for (const Role &role : kernel.roles)
    forEach<LoopOp>(role.body,
                    [&](LoopOp<const Op> loop) { isVariable |= loop.variable() == name || loop.carry() == name; });
  return isVariable || llvm::is_contained(kernel.sizes, name) || llvm::any_of(kernel.grid.indices, isNamed) ||
         kernel.buffer(name) || kernel.hasConstant(name) || llvm::any_of(kernel.lets, isNamed) || isIntegerOfRun(name);
}

std::string Kernel::freshName(StringRef wanted) const {
  std::string name = wanted.str();
  for (unsigned number = 2; isTaken(*this, name); ++number)
    name = (wanted + llvm::Twine(number)).str();
  return name;
}

std::vector<const Buffer *> Kernel::readTensors() const {
  std::vector<const Buffer *> tensors;
  if (hasOwnParams())
    return tensors;
  llvm::SmallPtrSet<const Buffer *, 8> named;
  for (const std::unique_ptr<Buffer> &buffer : buffers)
    if (buffer->map)
      named.insert(buffer->map->base);
  for (const Role &role : roles)
    walk(role.body, [&](const Op &op) {
      for (const Operand &operand : op.operands)
        if (operand.buffer && operand.buffer->space == Space::Global)
          named.insert(operand.buffer);
    });
  for (const std::unique_ptr<Buffer> &buffer : buffers)
    if (!buffer->shape.empty() && !buffer->param.empty() && !named.contains(buffer.get()))
      tensors.push_back(buffer.get());
  return tensors;
}

const Buffer *Kernel::scratchTensor() const {
  const auto found = llvm::find_if(buffers, [](const std::unique_ptr<Buffer> &buffer) {
    return buffer->space == Space::Global && !buffer->shape.empty() && buffer->param.empty() && !buffer->map;
  });
  return found == buffers.end() ? nullptr : found->get();
}

Buffer &Kernel::addBuffer(Buffer buffer) {
  assert(!this->buffer(buffer.name) && "buffer names are unique");
  buffers.push_back(std::make_unique<Buffer>(std::move(buffer)));
  return *buffers.back();
}

static const Constant *findConstant(const Kernel &kernel, StringRef name) {
  for (const Constant &constant : kernel.constants)
    if (constant.name == name)
      return &constant;
  return nullptr;
}

int64_t Kernel::constant(StringRef name) const {
  const Constant *found = findConstant(*this, name);
  assert(found && "the kernel lacks this constant");
  return found->value;
}

bool Kernel::hasConstant(StringRef name) const { return findConstant(*this, name) != nullptr; }

Count Kernel::addConstant(StringRef name, int64_t value, StringRef origin, const Location &location) {
  assert(!hasConstant(name) && "constant names are unique");
  constants.push_back({name.str(), value, origin.str(), location});
  return Count(unsigned(value), variable(name));
}

Op &Builder::add(std::unique_ptr<Op> op) {
  assert(op->operands.size() == opInfo(op->kind).operands.size() && "an op has all its operands, absent ones too");
  op->location = location;
  block->ops.push_back(std::move(op));
  return *block->ops.back();
}

Op &Builder::loop(StringRef variable, Expr begin, Expr end, llvm::function_ref<void()> fill) {
  return nest(add(makeLoop({.variable = variable.str(), .begin = std::move(begin), .end = std::move(end)})), fill);
}

Op &Builder::branch(Expr condition, llvm::function_ref<void()> fill) {
  return nest(add(makeIf({.condition = std::move(condition)})), fill);
}

Op &Builder::nest(Op &op, llvm::function_ref<void()> fill) {
  Block *outer = block;
  block = &op.body;
  fill();
  block = outer;
  return op;
}

void ir::walk(const Block &block, llvm::function_ref<void(const Op &)> visit) {
  for (const std::unique_ptr<Op> &op : block.ops) {
    visit(*op);
    walk(const_cast<const Block &>(op->body), visit);
  }
}

void ir::walk(Block &block, llvm::function_ref<void(Op &)> visit) {
  for (std::unique_ptr<Op> &op : block.ops) {
    visit(*op);
    walk(op->body, visit);
  }
}

void ir::forEachExpr(Op &op, llvm::function_ref<void(Expr &)> visit) {
  for (auto &[attr, value] : op.attributes)
    if (Expr *expr = std::get_if<Expr>(&value); expr && *expr)
      visit(*expr);
  for (Operand &operand : op.operands)
    if (operand.position)
      visit(operand.position);
}

void ir::forEachExpr(const Op &op, llvm::function_ref<void(const Expr &)> visit) {
  forEachExpr(const_cast<Op &>(op), [&](Expr &expr) { visit(expr); });
}

std::unique_ptr<Op> ir::clone(const Op &op) {
  auto copy = std::make_unique<Op>(op.kind);
  copy->operands = op.operands;
  copy->attributes = op.attributes;
  copy->location = op.location;
  copy->note = op.note;
  for (const std::unique_ptr<Op> &inner : op.body.ops)
    copy->body.ops.push_back(clone(*inner));
  return copy;
}

void ir::substitute(Op &op, StringRef variable, const Expr &value) {
  forEachExpr(op, [&](Expr &expr) { expr = expr.substitute(variable, value); });
  for (std::unique_ptr<Op> &inner : op.body.ops)
    substitute(*inner, variable, value);
}

Ops::iterator ir::insert(Ops &ops, Ops::iterator at, Ops added) {
  return ops.insert(at, std::make_move_iterator(added.begin()), std::make_move_iterator(added.end()));
}

void ir::rewrite(Block &block, llvm::function_ref<void(std::unique_ptr<Op>, Ops &)> place) {
  Ops ops;
  for (std::unique_ptr<Op> &op : block.ops) {
    rewrite(op->body, place);
    place(std::move(op), ops);
  }
  block.ops = std::move(ops);
}

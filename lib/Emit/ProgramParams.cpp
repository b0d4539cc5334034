// fagen: the one argument of all kernels of a program with parameters of its own.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ProgramParams.h"

#include "fagen/Analysis/Access.h"
#include "fagen/IR/LaunchDivisors.h"
#include "fagen/IR/Queries.h"
#include "fagen/IR/TextNames.h"
#include "fagen/IR/ValueRange.h"
#include "fagen/IR/Views.h"

#include "llvm/ADT/STLExtras.h"

#include <fagen/device/tensor_map.h>
#include <fagen/device/tile/layout.h>

using namespace fagen;
using namespace fagen::ir;

static bool isBulk(const Op &op) { return isBulkCopy(op) || op.kind == OpKind::BulkStore; }

bool fagen::isByAddress(const Op &op) {
  const Buffer *const matrix = globalOf(op);
  return matrix && !matrix->shape.empty() && !isBulk(op);
}

static bool isWriteTo(const Op &op) {
  return op.kind == OpKind::Store || op.kind == OpKind::BulkStore || op.kind == OpKind::StoreLse;
}

/// How many panels come at once.
static unsigned panelsOf(const Kernel &kernel, const Op &op, unsigned columns) {
  const Buffer &tensor = tensorOf(*globalOf(op));
  const std::optional<int64_t> all = constantOf(kernel, tensor.shape.back());
  const bool isWhole = op.kind == OpKind::CopyIssue && !op.isSet(Attr::Cluster) && all && *all % columns == 0 &&
                       tensor.shape.size() < device::kMapRank &&
                       matrixOf(op).indexOf(firstRowOf(op), firstColumnOf(op)).back() == constant(0);
  return isWhole ? op.operands.front().buffer->columns / columns : 1;
}

BoxShape fagen::boxOf(const Kernel &kernel, const Role &role, const Op &op) {
  const Buffer &tile = *op.operands[isWriteTo(op) ? 1 : 0].buffer;
  const unsigned bytes = device::panel_row_bytes(device::Swizzle(tile.layout), tile.columns, sizeOf(tile.type));
  const bool isOfGroup = isWriteTo(op) && actorOf(op) == Actor::Group;
  const unsigned parts = isOfGroup ? role.warps / kGroupWarps : op.isSet(Attr::Cluster) ? kernel.grid.cluster : 1;
  const unsigned columns = bytes / sizeOf(tile.type);
  const BoxMap map = *boxMapOf(matrixOf(op));
  const bool isOfPages = map.pageRows != 0;
  return {map.rowDimension, isOfPages ? map.pageRows : tile.rows / parts, columns,
          tile.layout == Layout::Xor ? bytes : 0, isOfPages ? 1 : panelsOf(kernel, op, columns)};
}

ProgramParams::ProgramParams(const Program &program, bool hasClocks) {
  for (const std::unique_ptr<Kernel> &kernel : program.kernels)
    for (const std::unique_ptr<Buffer> &buffer : kernel->buffers)
      if (!buffer->shape.empty() && !buffer->map &&
          llvm::none_of(all, [&](const ProgramTensor &tensor) { return tensor.buffer->param == buffer->param; }))
        all.push_back({buffer.get()});
  for (const std::unique_ptr<Kernel> &kernel : program.kernels)
    addNames(*kernel);
  for (const std::unique_ptr<Kernel> &kernel : program.kernels)
    addMaps(*kernel);
  for (const std::unique_ptr<Kernel> &kernel : program.kernels)
    addPointers(*kernel);
  for (const std::unique_ptr<Kernel> &kernel : program.kernels)
    for (const std::string &size : kernel->sizes)
      add({ProgramParam::Size, size});
  for (const std::unique_ptr<Kernel> &kernel : program.kernels)
    for (const Scalar &scalar : kernel->scalars)
      add({ProgramParam::Scalar, scalar.name, nullptr, {}, scalar.isReal});
  for (const std::unique_ptr<Kernel> &kernel : program.kernels)
    addReciprocals(*kernel);
  for (const std::unique_ptr<Kernel> &kernel : program.kernels)
    if (hasClocks)
      params.push_back(
          {.kind = ProgramParam::Clocks, .name = freshName("clocks_of_" + kernel->symbol), .kernel = kernel.get()});
}

/// Once each: kernels that declare a member mean the same by it (VerifyMembers.cpp).
void ProgramParams::add(ProgramParam param) {
  if (llvm::none_of(params, [&](const ProgramParam &known) { return known.name == param.name; }))
    params.push_back(std::move(param));
}

static const ProgramParam *findMap(llvm::ArrayRef<ProgramParam> params, const Buffer &tensor, const BoxShape &box) {
  for (const ProgramParam &param : params)
    if (param.kind == ProgramParam::Map && param.tensor->param == tensor.param && param.box == box)
      return &param;
  return nullptr;
}

/// "a_map", "a_map2": of names that the program does not declare.
std::string ProgramParams::freshName(const std::string &wanted) const {
  std::string name = wanted;
  auto isTaken = [&](const ProgramParam &param) { return param.name == name; };
  for (unsigned number = 2; declared.contains(name) || llvm::any_of(params, isTaken); ++number)
    name = wanted + std::to_string(number);
  return name;
}

/// Before maps and reciprocals, which take what is left.
void ProgramParams::addNames(const Kernel &kernel) {
  declared.insert(kernel.sizes.begin(), kernel.sizes.end());
  for (const Scalar &scalar : kernel.scalars)
    declared.insert(scalar.name);
  for (const std::unique_ptr<Buffer> &buffer : kernel.buffers) {
    declared.insert(buffer->param);
    declared.insert(membersOfStrides(buffer->param));
  }
}

void ProgramParams::addMaps(const Kernel &kernel) {
  for (const Role &role : kernel.roles)
    walk(role.body, [&](const Op &op) {
      const Buffer *const matrix = globalOf(op);
      if (!matrix)
        return;
      const Buffer &tensor = tensorOf(*matrix);
      for (unsigned i = 0; i < op.operands.size(); ++i)
        if (const Buffer *const written = op.operands[i].buffer;
            written && written->space == Space::Global &&
            (effectOn(op, i) != Effect::Read || op.kind == OpKind::FetchTile))
          for (ProgramTensor &known : all)
            known.isWritten |= known.buffer->param == tensorOf(*written).param;
      if (isBulk(op) && !findMap(params, tensor, boxOf(kernel, role, op)))
        params.push_back({ProgramParam::Map, freshName(tensor.param + "_map"), &tensor, boxOf(kernel, role, op)});
    });
}

void ProgramParams::addPointers(const Kernel &kernel) {
  auto addTensor = [this](const Buffer &tensor) {
    add({ProgramParam::Pointer, tensor.param, &tensor});
    if (tensor.isStrided)
      add({ProgramParam::Strides, membersOfStrides(tensor.param), &tensor});
  };
  for (const Let &let : kernel.lets)
    if (let.source)
      addTensor(*let.source->buffer);
    else if (let.value)
      forEachRead(kernel, let.value, addTensor);
  for (const Role &role : kernel.roles)
    walk(role.body, [&](const Op &op) {
      forEachRead(kernel, op, addTensor);
      if (isByAddress(op))
        for (const Operand *const global : globalOperandsOf(op))
          addTensor(tensorOf(*global->buffer));
    });
}

/// by_HQ, or by for what names no one size.
void ProgramParams::addReciprocals(const Kernel &kernel) {
  for (const Expr &divisor : launchDivisors(kernel)) {
    if (llvm::any_of(params, [&](const ProgramParam &known) { return known.divisor == divisor; }))
      continue;
    llvm::StringSet<> names;
    divisor.forEachVariable([&](llvm::StringRef name) { names.insert(name); });
    const std::string wanted = names.size() == 1 ? "by_" + names.begin()->first().str() : "by";
    params.push_back({ProgramParam::Reciprocal,
                      freshName(wanted),
                      nullptr,
                      {},
                      false,
                      divisor,
                      valueRange(kernel, divisor).low < 1});
  }
}

const ProgramParam *ProgramParams::clocksOf(const Kernel &kernel) const {
  const auto found = llvm::find_if(params, [&](const ProgramParam &param) { return param.kernel == &kernel; });
  return found == params.end() ? nullptr : &*found;
}

TileDivisors ProgramParams::divisors(const Kernel &kernel, llvm::StringRef holder) const {
  std::vector<TileDivisor> found;
  for (const ProgramParam &param : params)
    if (param.kind == ProgramParam::Reciprocal)
      found.push_back({holder.str() + param.name, param.divisor});
  return TileDivisors(kernel, std::move(found));
}

bool ProgramParams::hasMapOf(const Buffer &tensor) const {
  return llvm::any_of(params, [&](const ProgramParam &param) {
    return param.kind == ProgramParam::Map && param.tensor->param == tensor.param;
  });
}

llvm::StringRef ProgramParams::mapOf(const Kernel &kernel, const Role &role, const Op &op) const {
  return findMap(params, tensorOf(*globalOf(op)), boxOf(kernel, role, op))->name;
}

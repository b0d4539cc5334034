// fagen: attention's tensors in global memory, and what copies and stores see of them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Tensors.h"

#include "fagen/IR/Measures.h"
#include "fagen/IR/RunValues.h"

#include "llvm/ADT/Twine.h"

using namespace fagen;
using namespace fagen::ir;

ElementType fagen::elementOfQueries(const Problem &problem) {
  return problem.dtype == DType::BF16 ? ElementType::BF16 : ElementType::F16;
}

ElementType fagen::elementOfKeys(const Problem &problem) {
  switch (problem.kvDType) {
  case KvDType::E4M3:
    return ElementType::E4M3;
  case KvDType::E5M2:
    return ElementType::E5M2;
  case KvDType::Same:
    break;
  }
  return elementOfQueries(problem);
}

Tensors::Tensors(Kernel &kernel, const Variant &variant)
    : kernel(kernel), schedule(variant.schedule), hasSums(variant.problem.lse),
      element(elementOfQueries(variant.problem)), ofKeys(elementOfKeys(variant.problem)) {}

Buffer *Tensors::add(const llvm::Twine &name, ElementType type) {
  Buffer buffer;
  buffer.name = name.str();
  buffer.space = Space::Global;
  buffer.type = type;
  buffer.location = schedule.locationOf("copy");
  return &kernel.addBuffer(std::move(buffer));
}

/// Of one element a row where `columns` is null.
Buffer *Tensors::addTensor(llvm::StringRef param, ElementType type, bool isOfQueries, const Expr &columns) {
  Buffer *const tensor = add("g" + param, type);
  tensor->param = param.str();
  tensor->isStrided = true;
  tensor->shape = {variable(RunValue::Batch), variable(isOfQueries ? RunValue::Heads : RunValue::KvHeads),
                   variable(isOfQueries ? RunValue::SeqQ : RunValue::SeqKv)};
  if (columns)
    tensor->shape.push_back(columns);
  return tensor;
}

void Tensors::addInputs() {
  q.tensor = addTensor("q", element, true, variable(Measure::HeadDimQK));
  k.tensor = addTensor("k", ofKeys, false, variable(Measure::HeadDimQK));
  v.tensor = addTensor("v", ofKeys, false, variable(Measure::HeadDimV));
}

void Tensors::addOutput() {
  o.tensor = addTensor("o", element, true, variable(Measure::HeadDimV));
  if (hasSums)
    lse.tensor = addTensor("lse", ElementType::F32, true, {});
}

Expr Tensors::rows() const {
  const Expr queries = variable(RunValue::SeqQ);
  return schedule.gqa == Gqa::Pack ? queries * variable(RunValue::HeadsPerKv) : queries;
}

/// So many rows, each of which is `row` of `head`.
void Tensors::addView(Global &of, const Expr &rows, const Expr &head, const Expr &row) {
  const bool hasColumns = of.tensor->shape.size() == 4;
  of.view = add(of.tensor->param + "_of", of.tensor->type);
  of.view->shape = {rows};
  of.view->map = {of.tensor, "", this->row, hasColumns ? column : "", {variable(RunValue::BatchIndex), head, row}};
  if (!hasColumns)
    return;
  of.view->shape.push_back(of.tensor->shape.back());
  of.view->map->at.push_back(variable(column));
}

/// Of packed heads a query's rows lie side by side, `head` being the first of them.
void Tensors::addViewOfQueries(Global &of) {
  const Expr row = variable(this->row), head = variable(RunValue::Head), perKv = variable(RunValue::HeadsPerKv);
  if (schedule.gqa == Gqa::Pack)
    addView(of, rows(), head + row % perKv, floorDiv(row, perKv));
  else
    addView(of, rows(), head, row);
}

/// Boxes are of the whole head, pointers of the split.
void Tensors::addViewOfKeys(Global &of) {
  const bool isOfSplit = schedule.isSplit() && schedule.copy != Copy::Tma;
  const Expr first = isOfSplit ? variable(RunValue::SplitBegin) : constant(0);
  addView(of, variable(isOfSplit ? RunValue::SplitKeys : RunValue::SeqKv), variable(RunValue::KvHead),
          first + variable(row));
}

void Tensors::addViews() {
  row = kernel.freshName("row");
  column = kernel.freshName("column");
  addViewOfQueries(q);
  addViewOfKeys(k);
  addViewOfKeys(v);
  if (o.tensor)
    addViewOfQueries(o);
  if (lse.tensor)
    addViewOfQueries(lse);
}

// fagen: what a program with parameters of its own needs to run, as JSON.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Emit/ProgramPlan.h"

#include "ProgramParams.h"

#include "fagen/IR/ExprAnalysis.h"
#include "fagen/IR/Names.h"
#include "fagen/IR/Queries.h"
#include "fagen/IR/Views.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/JSON.h"

using namespace fagen;
using namespace fagen::ir;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

static llvm::StringRef wordOf(ExprKind kind) {
  switch (kind) {
  case ExprKind::Add:
    return "add";
  case ExprKind::Sub:
    return "sub";
  case ExprKind::Mul:
    return "mul";
  case ExprKind::FloorDiv:
    return "floor_div";
  case ExprKind::CeilDiv:
    return "ceil_div";
  case ExprKind::Mod:
    return "mod";
  case ExprKind::Min:
    return "min";
  case ExprKind::Max:
    return "max";
  default:
    llvm::report_fatal_error("a size is no truth"); // checkEmittable()
  }
}

static void appendPostfix(const Expr &expr, Array &terms) {
  if (expr.kind() == ExprKind::Constant)
    return terms.push_back(expr.value());
  if (expr.kind() == ExprKind::Variable)
    return terms.push_back(expr.name().str()); // which outlives the expression
  appendPostfix(expr.lhs(), terms);
  appendPostfix(expr.rhs(), terms);
  terms.push_back(wordOf(expr.kind()));
}

static Array postfix(const Kernel &kernel, const Expr &expr) {
  Array terms;
  appendPostfix(expand(kernel, expr), terms);
  return terms;
}

namespace {

class PlanBuilder {
public:
  explicit PlanBuilder(const Program &program) : program(program), params(program) {}

  Object build(llvm::StringRef source) {
    Object plan{{"program", program.name}, {"source", source}, {"target", program.kernels.front()->target}};
    Array buffers, fields, launches;
    for (const ProgramTensor &tensor : params.tensors())
      buffers.push_back(buffer(tensor));
    for (const ProgramParam &param : params.fields())
      appendFields(param, fields);
    for (const std::unique_ptr<Kernel> &kernel : program.kernels)
      launches.push_back(launch(*kernel));
    plan["buffers"] = std::move(buffers);
    plan["params"] = std::move(fields);
    plan["launches"] = std::move(launches);
    return plan;
  }

private:
  /// Bytes of the widest access by threads to rows of the tensor: a vector of a copy, a pair of elements of a store.
  int64_t alignmentOf(const Buffer &tensor) const {
    int64_t most = 1;
    for (const std::unique_ptr<Kernel> &kernel : program.kernels)
      for (const Role &role : kernel->roles)
        walk(role.body, [&](const Op &op) {
          if (!isByAddress(op) || tensorOf(*globalOf(op)).param != tensor.param)
            return;
          const int64_t vector = vectorBytesOf(*kernel), element = sizeOf(tensor.type);
          most = std::max(most, op.kind == OpKind::StoreLse ? element
                                : op.kind == OpKind::Store  ? std::min(vector, 2 * element)
                                                            : vector);
        });
    return most;
  }

  /// Shapes are of sizes and constants of the kernel that declares the buffer.
  const Kernel &kernelOf(const Buffer &tensor) const {
    for (const std::unique_ptr<Kernel> &kernel : program.kernels)
      if (kernel->buffer(tensor.name) == &tensor)
        return *kernel;
    llvm::report_fatal_error("a buffer of no kernel");
  }

  Object buffer(const ProgramTensor &tensor) const {
    Array shape;
    for (const Expr &size : tensor.buffer->shape)
      shape.push_back(postfix(kernelOf(*tensor.buffer), size));
    Object object{{"name", tensor.buffer->param}, {"type", toString(tensor.buffer->type)}, {"shape", std::move(shape)}};
    if (tensor.isWritten)
      object["written"] = true;
    if (const int64_t alignment = alignmentOf(*tensor.buffer); alignment > 1)
      object["alignment"] = alignment;
    return object;
  }

  void appendFields(const ProgramParam &param, Array &fields) const {
    switch (param.kind) {
    case ProgramParam::Map:
      return fields.push_back(map(param));
    case ProgramParam::Pointer:
      return fields.push_back(Object{{"kind", "pointer"}, {"buffer", param.tensor->param}});
    case ProgramParam::Strides:
      for (unsigned i = 0; i + 1 < param.tensor->shape.size(); ++i)
        fields.push_back(Object{{"kind", "stride"}, {"buffer", param.tensor->param}, {"dimension", int64_t(i)}});
      return;
    case ProgramParam::Size:
      return fields.push_back(Object{{"kind", "i32"}, {"value", Array{param.name}}});
    case ProgramParam::Scalar:
      if (param.isReal)
        return fields.push_back(Object{{"kind", "f32"}, {"value", param.name}});
      return fields.push_back(Object{{"kind", "i32"}, {"value", Array{param.name}}});
    }
  }

  Object map(const ProgramParam &param) const {
    const Kernel &kernel = kernelOf(*param.tensor);
    const unsigned rank = param.tensor->shape.size();
    Array dimensions;
    Expr stride = constant(1);
    auto add = [&](const Expr &size, const Expr &stride, unsigned box) {
      dimensions.push_back(
          Object{{"size", postfix(kernel, size)}, {"stride", postfix(kernel, stride)}, {"box", int64_t(box)}});
    };
    for (unsigned d = rank; d-- != 0;) {
      const Expr &size = param.tensor->shape[d], columns = constant(param.box.columns);
      const bool isOfPanels = param.box.panels > 1;
      if (d + 1 == rank)
        add(isOfPanels ? columns : size, stride, param.box.columns);
      else
        add(size, stride, d == param.box.rowDimension ? param.box.rows : 1);
      if (isOfPanels && d == param.box.rowDimension)
        add(floorDiv(param.tensor->shape.back(), columns), columns, param.box.panels);
      stride = stride * size;
    }
    return Object{{"kind", "map"},
                  {"buffer", param.tensor->param},
                  {"swizzle", int64_t(param.box.swizzle)},
                  {"dimensions", std::move(dimensions)}};
  }

  static Object launch(const Kernel &kernel) {
    Expr ctas = constant(1);
    for (const GridIndex &index : kernel.grid.indices)
      ctas = ctas * index.extent;
    const bool isPersistent = kernel.grid.kind == CtaGrid::Persistent;
    return Object{{"symbol", kernel.symbol},
                  {"threads", int64_t(kernel.threads)},
                  {"shared_bytes", Array{int64_t(kernel.sharedBytes)}},
                  {"ctas", postfix(kernel, isPersistent ? min(ctas, variable("sms")) : ctas)},
                  {"resident", isPersistent}};
  }

  const Program &program;
  const ProgramParams params;
};

} // namespace

std::string fagen::emitProgramPlan(const Program &program, llvm::StringRef source) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << llvm::formatv("{0:2}", Value(PlanBuilder(program).build(source))) << "\n";
  return text;
}

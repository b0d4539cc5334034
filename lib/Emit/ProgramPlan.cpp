// fagen: what a program with parameters of its own needs to run, as JSON.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Emit/ProgramPlan.h"

#include "fagen/Emit/Emittable.h"

#include "ProgramParams.h"
#include "splits/SizeProgram.h"

#include "fagen/Emit/Manifest.h"

#include "fagen/IR/ExprAnalysis.h"
#include "fagen/IR/GridQueries.h"
#include "fagen/IR/Names.h"
#include "fagen/IR/Queries.h"
#include "fagen/IR/Views.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MathExtras.h"

#include <fagen/device/tensor_map.h>
#include <fagen/device/trace.h>
#include <fmt/format.h>

#include <set>

using namespace fagen;
using namespace fagen::ir;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

/// Bytes of the widest access to a part's row (ops/combine.h).
static constexpr unsigned kVectorOfParts = 16;
static constexpr unsigned kVectorOfTransposed = 16;

static void appendPostfix(const Expr &expr, Array &terms) {
  if (expr.kind() == ExprKind::Constant)
    return terms.push_back(expr.value());
  if (expr.kind() == ExprKind::Variable)
    return terms.push_back(expr.name().str()); // the plan may outlive the program
  appendPostfix(expr.lhs(), terms);
  appendPostfix(expr.rhs(), terms);
  terms.push_back(wordOf(*operationOf(expr.kind()))); // checkEmittable(): a size is no truth
}

static Array postfix(const Kernel &kernel, const Expr &expr) {
  Array terms;
  appendPostfix(expand(kernel, expr), terms);
  return terms;
}

namespace {

class PlanBuilder {
public:
  PlanBuilder(const Program &program, bool hasClocks) : program(program), params(program, hasClocks) {}

  Object build() {
    Object plan{{"program", program.name}, {"target", program.kernels.front()->target}};
    Array buffers, fields, launches;
    for (const ProgramTensor &tensor : params.tensors())
      buffers.push_back(buffer(tensor));
    for (const ProgramParam &param : params.fields())
      if (param.kind == ProgramParam::Clocks)
        buffers.push_back(clocks(param));
    for (const ProgramParam &param : params.fields())
      appendFields(param, fields);
    for (const std::unique_ptr<Kernel> &kernel : program.kernels)
      launches.push_back(launch(*kernel));
    plan["argument_bytes"] = layOut(fields);
    plan["numbers"] = numbers();
    plan["buffers"] = std::move(buffers);
    plan["params"] = std::move(fields);
    plan["launches"] = std::move(launches);
    return plan;
  }

private:
  /// Where members of the struct stand, as C++ places them; gives its bytes.
  static int64_t layOut(Array &fields) {
    int64_t end = 0, alignment = 1;
    for (Value &value : fields) {
      Object &field = *value.getAsObject();
      const llvm::StringRef kind = *field.getString("kind");
      const bool isMap = kind == "map", isShort = kind == "i32" || kind == "f32";
      const int64_t aligned = isMap ? alignof(device::TensorMap) : isShort ? 4 : 8;
      end = llvm::alignTo(end, aligned);
      alignment = std::max(alignment, aligned);
      field["offset"] = end;
      end += isMap ? sizeof(device::TensorMap) : aligned;
    }
    return llvm::alignTo(end, alignment);
  }

  /// What the caller gives in addition to tensors, or what their extents tell: sizes and params, each once.
  Array numbers() const {
    Array found;
    std::set<std::string> names;
    for (const std::unique_ptr<Kernel> &kernel : program.kernels) {
      for (const std::string &size : kernel->sizes)
        if (names.insert(size).second)
          found.push_back(Object{{"name", size},
                                 {"kind", "i32"},
                                 {"low", kernel->rangeOfSize(size).low},
                                 {"high", kernel->rangeOfSize(size).high}});
      for (const Scalar &scalar : kernel->scalars)
        if (!names.insert(scalar.name).second)
          continue;
        else if (scalar.isReal)
          found.push_back(Object{{"name", scalar.name}, {"kind", "f32"}});
        else
          found.push_back(Object{{"name", scalar.name}, {"kind", "i32"}, {"low", scalar.low}, {"high", scalar.high}});
    }
    return found;
  }

  /// As it is declared: "f16[M, K]", "u32[B + 1] in [0, 4096] ascending".
  std::string declaredType(const Buffer &tensor) const {
    std::string text = toString(tensor.type).str() + "[";
    for (const Expr &size : tensor.shape)
      text += (text.back() == '[' ? "" : ", ") + expand(kernelOf(tensor), size).str();
    text += tensor.isPaired ? "] paired" : "]";
    if (tensor.values)
      text += " in [" + std::to_string(tensor.values->low) + ", " + std::to_string(tensor.values->high) + "]";
    return text + (tensor.isAscending ? " ascending" : "") + (tensor.isDistinct ? " distinct" : "") +
           (tensor.arePlaces ? " places" : "");
  }

  /// What the caller promises of integers.
  static void addPromises(const Buffer &tensor, Object &object) {
    if (tensor.values)
      object["in"] = Array{tensor.values->low, tensor.values->high};
    if (tensor.isAscending)
      object["ascending"] = true;
    if (tensor.isDistinct)
      object["distinct"] = true;
  }

  /// Bytes of the widest access by threads to rows of the tensor: a vector of a copy, a pair of elements of a store.
  int64_t alignmentOf(const Buffer &tensor) const {
    int64_t most = 1;
    for (const std::unique_ptr<Kernel> &kernel : program.kernels)
      for (const Role &role : kernel->roles)
        walk(role.body, [&](const Op &op) {
          if (!isByAddress(op))
            return;
          const int64_t vector = vectorBytesOf(*kernel), element = sizeOf(tensor.type);
          const bool isByVectors = op.kind == OpKind::CopyIssue || op.kind == OpKind::FetchTile ||
                                   (op.kind == OpKind::Store && storesVectors(op));
          for (const Operand *const global : globalOperandsOf(op))
            if (tensorOf(*global->buffer).param == tensor.param)
              most = std::max(most, op.kind == OpKind::Transpose       ? int64_t(kVectorOfTransposed)
                                    : isByVectors                      ? vector
                                    : Matrix(*global).isVector()       ? element
                                    : partDimensionOf(*global->buffer) ? int64_t(kVectorOfParts)
                                                                       : std::min(vector, 2 * element));
        });
    return most;
  }

  /// Whether tickets come from it, or parts of results meet there: it is 0 before and after each launch.
  bool isCounter(const Buffer &tensor) const {
    bool found = false;
    for (const std::unique_ptr<Kernel> &kernel : program.kernels)
      for (const Role &role : kernel->roles) {
        forEach<FetchTileOp>(
            role.body, [&](FetchTileOp<const Op> fetch) { found |= fetch.counter().buffer->param == tensor.param; });
        forEach<CombineLastOp>(role.body, [&](CombineLastOp<const Op> combine) {
          found |= tensorOf(*combine.parts().buffer).param == tensor.param;
        });
      }
    return found;
  }

  /// Whether a launch leaves there which tiles there are, for those after it. The last launch leaves it for the caller.
  bool isPlan(const Buffer &tensor) const {
    bool found = false;
    for (const std::unique_ptr<Kernel> &kernel : llvm::drop_end(program.kernels))
      for (const Role &role : kernel->roles)
        forEach<PlanRowsOp>(role.body, [&](PlanRowsOp<const Op> plan) {
          for (const Operand *each : {&plan.rows(), &plan.words(), &plan.order(), &plan.count()})
            found |= each->buffer->param == tensor.param;
        });
    return found;
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
    object["declared"] = declaredType(*tensor.buffer);
    if (tensor.isWritten)
      object["written"] = true;
    if (isPlan(*tensor.buffer))
      object["workspace"] = true;
    if (isCounter(*tensor.buffer))
      object["zeroed"] = object["restored"] = true;
    if (tensor.buffer->isStrided)
      object["strided"] = true;
    addPromises(*tensor.buffer, object);
    if (const int64_t alignment =
            std::max(alignmentOf(*tensor.buffer), params.hasMapOf(*tensor.buffer) ? 16 : int64_t(1));
        alignment > 1)
      object["alignment"] = alignment;
    return object;
  }

  /// A WarpRecord (fagen/device/trace.h) for each warp of as many CTAs as there are tiles.
  static Object clocks(const ProgramParam &param) {
    const int64_t warps = param.kernel->threads / 32;
    Array shape{postfix(*param.kernel, tilesOf(*param.kernel)), Array{warps}, Array{int64_t(device::kRecordWords)}};
    return Object{
        {"name", param.name},
        {"type", "u32"},
        {"shape", std::move(shape)},
        {"written", true},
        {"zeroed", true},
        {"clocks_of", param.kernel->symbol},
        {"declared", fmt::format("u32[{}, {}, {}]", tilesOf(*param.kernel).str(), warps, device::kRecordWords)}};
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
    case ProgramParam::Clocks:
      return fields.push_back(Object{{"kind", "pointer"}, {"buffer", param.name}});
    case ProgramParam::Size:
      return fields.push_back(Object{{"kind", "i32"}, {"value", Array{param.name}}});
    case ProgramParam::Scalar:
      if (param.isReal)
        return fields.push_back(Object{{"kind", "f32"}, {"value", param.name}});
      return fields.push_back(Object{{"kind", "i32"}, {"value", Array{param.name}}});
    case ProgramParam::Reciprocal: { // fagen/device/reciprocal.h
      const Expr divisor = param.mayBeZero ? max(param.divisor, constant(1)) : param.divisor;
      const Expr value = floorDiv(constant(int64_t(1) << 62), divisor) + constant(1);
      return fields.push_back(Object{{"kind", "i64"}, {"value", postfix(*program.kernels.front(), value)}});
    }
    }
  }

  Object map(const ProgramParam &param) const {
    const Kernel &kernel = kernelOf(*param.tensor);
    const unsigned rank = param.tensor->shape.size();
    Array dimensions;
    Expr stride = constant(1);
    auto add = [&](const Expr &size, const Expr &stride, unsigned box, std::optional<unsigned> along) {
      Object dimension{{"size", postfix(kernel, size)}, {"stride", postfix(kernel, stride)}, {"box", int64_t(box)}};
      if (along)
        dimension["along"] = int64_t(*along);
      dimensions.push_back(std::move(dimension));
    };
    for (unsigned d = rank; d-- != 0;) {
      const Expr &size = param.tensor->shape[d], columns = constant(param.box.columns);
      const bool isOfPanels = param.box.panels > 1, isLast = d + 1 == rank;
      add(isLast && isOfPanels ? columns : size, stride,
          isLast                        ? param.box.columns
          : d == param.box.rowDimension ? param.box.rows
                                        : 1,
          param.tensor->isStrided ? std::optional(d) : std::nullopt);
      if (isOfPanels && d == param.box.rowDimension)
        add(floorDiv(param.tensor->shape.back(), columns), columns, param.box.panels, std::nullopt);
      stride = stride * size;
    }
    return Object{{"kind", "map"},
                  {"buffer", param.tensor->param},
                  {"swizzle", int64_t(param.box.swizzle)},
                  {"dimensions", std::move(dimensions)}};
  }

  Object launch(const Kernel &kernel) const {
    const CtaGrid &grid = kernel.grid;
    const Expr tiles = tilesOf(kernel), cluster = constant(grid.cluster), sms = variable("sms"),
               places = grid.hasClusters() ? max(floorDiv(sms, cluster), constant(1)) * cluster : sms;
    Object launch{{"symbol", kernel.symbol},
                  {"threads", int64_t(kernel.threads)},
                  {"shared_bytes", Array{int64_t(kernel.sharedBytes)}},
                  {"ctas", postfix(kernel, grid.isPersistent ? min(tiles, places) : tiles)},
                  {"resident", grid.isPersistent}};
    Array roles;
    for (const Role &role : kernel.roles)
      roles.push_back(
          Object{{"name", role.name}, {"first_warp", int64_t(role.firstWarp)}, {"warps", int64_t(role.warps)}});
    if (params.clocksOf(kernel))
      launch["roles"] = std::move(roles);
    if (grid.hasClusters())
      launch["cluster"] = grid.cluster;
    return launch;
  }

  const Program &program;
  const ProgramParams params;
};

} // namespace

std::optional<Object> fagen::programPlan(const Program &program, bool hasClocks) {
  if (!takesOwnArgument(program))
    return std::nullopt;
  return PlanBuilder(program, hasClocks).build();
}

std::string fagen::emitProgramPlan(Object plan, llvm::StringRef source) {
  plan["source"] = source;
  std::string text;
  llvm::raw_string_ostream os(text);
  os << llvm::formatv("{0:2}", Value(std::move(plan))) << "\n";
  return text;
}

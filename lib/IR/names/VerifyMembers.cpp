// fagen: the IR verifier: members of the one argument that all kernels of a program take.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A member has a name and a meaning: a tensor of a type and a shape, a size, a number of a range, the strides of a
// tensor, the counter of a drawn grid. Kernels share members that they declare alike. One kernel declares a tensor
// once: to the proof two buffers are apart, so two of them on one param would hide that they are the same memory.

#include "../VerifierState.h"

#include "fagen/IR/Names.h"
#include "fagen/IR/OpClasses.h"
#include "fagen/IR/TextNames.h"
#include "fagen/IR/Views.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace fagen;
using namespace fagen::ir;
using llvm::StringRef;
using llvm::Twine;

namespace {

struct Member {
  std::string declaration; ///< "%a, "; what the kernel calls it
  std::string meaning;     ///< "a tensor f16[M, K]"
  const Kernel *kernel = nullptr;

  std::string describe() const { return declaration + meaning + " in kernel @" + kernel->symbol; }
};

class MemberVerifier {
public:
  MemberVerifier(const Program &program, DefectHandler report) : program(program), report(report) {}

  bool check() {
    for (const std::unique_ptr<Kernel> &kernel : program.kernels) {
      checkOnce(*kernel);
      claimAll(*kernel);
      checkSymbol(*kernel);
    }
    return isSound;
  }

private:
  void defect(const Location &location, const Twine &message) {
    report(location, message);
    isSound = false;
  }

  /// Tensors of the caller, each declared by one buffer.
  void checkOnce(const Kernel &kernel) {
    llvm::StringMap<const Buffer *> known;
    for (const std::unique_ptr<Buffer> &buffer : kernel.buffers) {
      if (buffer->param.empty())
        continue;
      const auto [first, isNew] = known.try_emplace(buffer->param, buffer.get());
      if (!isNew)
        defect(buffer->location, "%" + buffer->name + " and %" + first->second->name + " are both param '" +
                                     buffer->param + "', one memory under two names in kernel @" + kernel.symbol +
                                     "; declare the tensor once, and views of it");
    }
  }

  void claimAll(const Kernel &kernel) {
    llvm::StringSet<> numbers;
    for (const std::string &size : kernel.sizes) {
      numbers.insert(size);
      const auto range = kernel.sizeRanges.find(size);
      claim(size, {"", range == kernel.sizeRanges.end() ? "a size" : "a size" + textOf(range->second), &kernel},
            kernel.location);
    }
    for (const Scalar &scalar : kernel.scalars)
      if (numbers.insert(scalar.name).second) // else it hides another, which is said already
        claim(scalar.name, {"", scalar.isReal ? "an f32" : "an i32" + textOf({scalar.low, scalar.high}), &kernel},
              kernel.location);
    llvm::StringSet<> known;
    for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
      if (!buffer->param.empty() && !buffer->shape.empty() && known.insert(buffer->param).second)
        claimTensor(kernel, *buffer);
  }

  void claimTensor(const Kernel &kernel, const Buffer &tensor) {
    const std::string name = "%" + tensor.name;
    const bool isCounter = countsTiles(kernel, tensor);
    if (isCounter && hasOtherUses(kernel, tensor))
      defect(tensor.location,
             name + " counts tiles (fetch_tile), and the kernel uses it otherwise, too; take another tensor for that");
    if (tensor.arePlaces && llvm::none_of(program.kernels, [&](const auto &each) { return plansTiles(*each, tensor); }))
      defect(tensor.location, name + ": 'places' are what plan_rows writes in a launch before; a caller promises "
                                     "'distinct'");
    if (!isCounter && isCounterParam(tensor.param))
      defect(tensor.location,
             name + ": param '" + tensor.param + "' is the counter of drawn grids; choose another name");
    claim(tensor.param, {name + ", ", isCounter ? "a counter of tiles" : meaningOf(kernel, tensor), &kernel},
          tensor.location);
    if (tensor.isStrided)
      claim(membersOfStrides(tensor.param), {"", "the strides of '" + tensor.param + "'", &kernel}, tensor.location);
  }

  static std::string textOf(Interval range) {
    return " in [" + std::to_string(range.low) + ", " + std::to_string(range.high) + "]";
  }

  static std::string meaningOf(const Kernel &kernel, const Buffer &tensor) {
    std::string text = "a tensor " + toString(tensor.type).str() + "[";
    for (const Expr &size : tensor.shape)
      text += (text.back() == '[' ? "" : ", ") + expand(kernel, size).str();
    text += tensor.isStrided ? "] strided" : "]";
    text += tensor.isPaired ? " paired" : "";
    if (tensor.values)
      text += textOf(*tensor.values);
    return text + (tensor.isAscending ? " ascending" : "") + (tensor.isDistinct ? " distinct" : "") +
           (tensor.arePlaces ? " places" : "") + (tensor.isConstant ? " constant" : "");
  }

  void claim(StringRef name, const Member &member, const Location &location) {
    const auto [place, isNew] = members.try_emplace(name, member);
    const Member &first = place->second;
    if (!isNew && (first.meaning != member.meaning || first.kernel == member.kernel))
      defect(location, "'" + name + "' is " + member.describe() + ", and " + first.describe() +
                           "; all kernels of a program take one argument: say the same of it, or choose another name");
  }

  static bool countsTiles(const Kernel &kernel, const Buffer &tensor) {
    bool found = false;
    for (const Role &role : kernel.roles)
      forEach<FetchTileOp>(role.body, [&](FetchTileOp<const Op> fetch) { found |= fetch.counter().buffer == &tensor; });
    return found;
  }

  /// Whether the kernel writes the numbers of tiles there, in the order in which they are worked on.
  static bool plansTiles(const Kernel &kernel, const Buffer &tensor) {
    bool found = false;
    for (const Role &role : kernel.roles)
      forEach<PlanRowsOp>(role.body,
                          [&](PlanRowsOp<const Op> plan) { found |= plan.order().buffer->param == tensor.param; });
    return found;
  }

  static bool hasOtherUses(const Kernel &kernel, const Buffer &tensor) {
    bool found = false;
    auto look = [&](const Buffer &read) { found |= &read == &tensor; };
    for (const Let &let : kernel.lets)
      found |= let.source && let.source->buffer == &tensor;
    for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
      found |= buffer->map && buffer->map->base == &tensor;
    for (const Role &role : kernel.roles)
      walk(role.body, [&](const Op &op) {
        forEachRead(kernel, op, look);
        found |= op.kind != OpKind::FetchTile && globalOf(op) == &tensor;
      });
    return found;
  }

  /// Functions of the text and the namespaces of kernels.
  void checkSymbol(const Kernel &kernel) {
    for (const std::unique_ptr<Kernel> &other : program.kernels)
      if (kernel.symbol == other->symbol + "_kernel")
        defect(kernel.location, "kernel @" + kernel.symbol + " is called as the text calls the parts of @" +
                                    other->symbol + "; choose another symbol");
  }

  const Program &program;
  DefectHandler report;
  llvm::StringMap<Member> members;
  bool isSound = true;
};

} // namespace

bool ir::verifyMembers(const Program &program, DefectHandler report) { return MemberVerifier(program, report).check(); }

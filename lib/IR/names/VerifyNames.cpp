// fagen: the IR verifier: names of a kernel with parameters of its own, which its text and its callers use.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nothing is renamed on the way: a buffer, a let or a size is called in the text as it is here. So what C++, the device
// library or the emitter has for itself is refused, and each scope of the text has every name once.

#include "../VerifierState.h"
#include "NameRules.h"
#include "fagen/IR/TextNames.h"

#include "fagen/IR/OpClasses.h"

#include "llvm/ADT/StringMap.h"

using namespace fagen;
using namespace fagen::ir;
using llvm::StringRef;
using llvm::Twine;

namespace {

class NameVerifier {
public:
  explicit NameVerifier(VerifierState &state) : state(state), kernel(state.kernel) {}

  void check() {
    checkSymbol();
    checkArguments();
    for (const GridIndex &index : kernel.grid.indices)
      require(whyNoVariable(index.name), kernel.location, "grid index", index.name);
    for (const Let &let : kernel.lets)
      require(whyNoVariable(let.name), kernel.location, "let", let.name);
    for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
      checkBuffer(*buffer);
    for (const Role &role : kernel.roles)
      walk(role.body, [&](const Op &op) { checkLoop(op); });
    checkScope();
  }

private:
  bool require(const std::string &why, const Location &location, const Twine &what, StringRef name) {
    if (!why.empty())
      state.defect(location, what + " '" + name + "' " + why + "; choose another name");
    return why.empty();
  }

  void checkSymbol() {
    if (isIdentifier(kernel.symbol)) // else the head says so
      require(whyNoName(kernel.symbol), kernel.location, "the kernel's symbol", kernel.symbol);
  }

  void checkArguments() {
    auto number = [&](const char *what, StringRef name) {
      if (require(whyNoArgument(name), kernel.location, what, name))
        require(whyNoNumber(name), kernel.location, what, name);
    };
    for (const std::string &size : kernel.sizes)
      number("size", size);
    for (const Scalar &scalar : kernel.scalars)
      number("param", scalar.name);
    for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
      if (!buffer->param.empty())
        require(whyNoArgument(buffer->param), buffer->location, "%" + buffer->name + ": param", buffer->param);
  }

  /// Members of shared memory or registers, and in the values of maps parameters of a lambda. Those in global memory
  /// stand in the text by their params; the row of a view is a lambda's parameter.
  void checkBuffer(const Buffer &buffer) {
    if (buffer.space != Space::Global)
      require(whyNoName(buffer.name), buffer.location, "buffer", buffer.name);
    else if (buffer.map)
      require(whyNoName(buffer.map->row), buffer.location, "%" + buffer.name + ": row", buffer.map->row);
  }

  void checkLoop(const Op &op) {
    const auto loop = dynCast<LoopOp>(op);
    if (!loop)
      return;
    checkVariable(loop->variable(), op.location, "loop: variable");
    if (op.has(Attr::Carry))
      checkVariable(loop->carry(), op.location, "loop: carried variable");
  }

  /// What a view calls its rows and columns stands there for others than an op's position, which may name loops.
  void checkVariable(StringRef name, const Location &location, const char *what) {
    if (!require(whyNoVariable(name), location, what, name))
      return;
    for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
      if (buffer->map && (buffer->map->row == name || buffer->map->column == name))
        return state.defect(location, Twine(what) + " '" + name + "' is what view %" + buffer->name +
                                          " calls its rows or columns; choose another name");
  }

  /// Constants, functions and types of the kernel's namespace.
  void checkScope() {
    for (const Constant &constant : kernel.constants)
      if (require(whyNoVariable(constant.name), constant.location, "constant", constant.name))
        claim(constant.name, constant.location, "constant " + constant.name);
    for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
      if (buffer->space == Space::Shared && buffer->type != ElementType::MBarrier && buffer->type != ElementType::U32)
        claimType(typeOfTile(buffer->name), buffer->location, "buffer %" + buffer->name);
    for (const Role &role : kernel.roles) {
      if (require(whyNoRole(role.name), kernel.location, "role", role.name))
        claim(role.name, kernel.location, "role " + role.name);
      claimType(typeOfRegisters(role.name), kernel.location, "role " + role.name);
    }
  }

  void claimType(const std::string &type, const Location &location, const std::string &owner) {
    if (require(whyNoName(type), location, owner + ": its type", type))
      claim(type, location, owner);
  }

  void claim(StringRef name, const Location &location, const std::string &owner) {
    const auto [first, isNew] = owners.try_emplace(name, owner);
    if (!isNew)
      state.defect(location,
                   owner + " and " + first->second + " would both be '" + name + "' in the text; rename one of them");
  }

  VerifierState &state;
  const Kernel &kernel;
  llvm::StringMap<std::string> owners; ///< of names in the kernel's namespace
};

} // namespace

void ir::verifyNames(VerifierState &state) {
  if (state.kernel.hasOwnParams())
    NameVerifier(state).check();
}

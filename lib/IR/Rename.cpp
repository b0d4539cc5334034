// fagen: gives buffers, lets, roles and loops names that say nothing.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/Rename.h"

#include "fagen/IR/OpClasses.h"
#include "fagen/IR/Verifier.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;
using llvm::StringRef;

namespace {

using Names = llvm::StringMap<std::string>;

/// All variables at once: a new name may be an old one of another.
Expr renamed(const Expr &expr, const Names &names) {
  return expr.rewritten([&](const Expr &node) {
    const auto found = node.kind() == ExprKind::Variable ? names.find(node.name()) : names.end();
    return found == names.end() ? Expr() : variable(found->second);
  });
}

class Renamer {
public:
  void rename(Kernel &kernel) {
    counts.clear();
    Names names = renameBuffers(kernel);
    for (Scalar &scalar : kernel.scalars) {
      const std::string name = next("param");
      names[scalar.name] = name;
      scalar.name = name;
    }
    for (Let &let : kernel.lets) {
      let.value = renamed(let.value, names);
      if (let.source)
        for (Expr &index : let.source->at)
          index = renamed(index, names);
      if (let.judged)
        for (Expr *each : {&let.judged->first, &let.judged->tiles, &let.judged->seen, &let.judged->whole})
          *each = renamed(*each, names);
      if (isIntegerOfRun(let.name))
        continue;
      const std::string name = next("let");
      names[let.name] = name;
      let.name = name;
      if (let.source || let.judged)
        let.value = variable(name);
    }
    renameViews(kernel, names);
    for (Role &role : kernel.roles) {
      role.name = next("role");
      rename(role.body, names);
    }
  }

private:
  std::string next(StringRef kind) { return (kind + llvm::Twine(counts[kind]++)).str(); }

  /// What elements are called in the values of maps.
  Names renameBuffers(Kernel &kernel) {
    Names elements;
    for (std::unique_ptr<Buffer> &buffer : kernel.buffers) {
      std::string name;
      if (buffer->space == Space::Global)
        name = globals.try_emplace(buffer->name, "global" + std::to_string(globals.size())).first->second;
      else
        name = next("buffer");
      elements["%" + buffer->name] = "%" + name;
      buffer->name = name;
    }
    return elements;
  }

  /// Their rows and columns are names, too.
  void renameViews(Kernel &kernel, const Names &names) {
    for (std::unique_ptr<Buffer> &buffer : kernel.buffers) {
      Names inside = names;
      if (buffer->map && !buffer->map->index.empty())
        inside[std::exchange(buffer->map->index, "index")] = "index";
      for (Expr &size : buffer->shape)
        size = renamed(size, inside);
      if (!buffer->map)
        continue;
      inside[std::exchange(buffer->map->row, "row")] = "row";
      if (!buffer->map->column.empty())
        inside[std::exchange(buffer->map->column, "column")] = "column";
      for (Expr &index : buffer->map->at)
        index = renamed(index, inside);
    }
  }

  void rename(Block &block, const Names &names) {
    for (std::unique_ptr<Op> &op : block.ops) {
      forEachExpr(*op, [&](Expr &expr) { expr = renamed(expr, names); });
      if (const auto loop = dynCast<LoopOp>(*op))
        rename(*loop, names);
      else
        rename(op->body, names);
    }
  }

  void rename(LoopOp<> loop, Names names) {
    const std::string variable = next("step");
    names[loop.variable()] = variable;
    loop.setVariable(variable);
    if (!loop.carry().empty()) {
      const std::string carry = next("carry");
      names[loop.carry()] = carry;
      loop.setCarry(carry);
    }
    if (!loop.name().empty())
      loop.setName(next("loop"));
    rename(loop->body, names);
  }

  llvm::StringMap<unsigned> counts; ///< of the kernel's names by kind
  Names globals;
};

} // namespace

void fagen::ir::renameAll(Program &program) {
  Renamer renamer;
  for (std::unique_ptr<Kernel> &kernel : program.kernels)
    renamer.rename(*kernel);
}

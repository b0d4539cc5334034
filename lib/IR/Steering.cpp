// fagen: finds the lets that loops, conditions and positions depend on.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/Steering.h"

#include "llvm/ADT/StringSet.h"

using namespace fagen;
using namespace fagen::ir;
using llvm::StringRef;

void fagen::ir::forEachSteering(const Op &op, llvm::function_ref<void(const Expr &)> visit) {
  for (Attr attribute : {Attr::Begin, Attr::End, Attr::When, Attr::Condition, Attr::Step})
    if (op.has(attribute))
      visit(op.expr(attribute));
  for (const Operand &operand : op.operands)
    if (operand.position && operand.buffer->isRing) // that of a view says where elements lie, and no more
      visit(operand.position);
}

SteeringLets fagen::ir::steeringLets(const Kernel &kernel, llvm::ArrayRef<const Role *> roles) {
  llvm::StringSet<> names, turns;
  auto addTo = [](llvm::StringSet<> &set) {
    return [&set](const Expr &expr) { expr.forEachVariable([&](StringRef name) { set.insert(name); }); };
  };
  for (const Role *role : roles)
    walk(role->body, [&](const Op &op) {
      forEachSteering(op, addTo(names));
      if (op.has(Attr::Bytes))
        addTo(names)(op.expr(Attr::Bytes));
      if (op.has(Attr::Carry))
        addTo(turns)(op.expr(Attr::End));
    });
  llvm::StringMap<int64_t> known;
  for (const Constant &constant : kernel.constants)
    known[constant.name] = constant.value;
  auto lookup = [&](StringRef name) -> std::optional<int64_t> {
    auto found = known.find(name);
    return found == known.end() ? std::nullopt : std::optional(found->second);
  };
  SteeringLets found;
  for (const Let &let : kernel.lets)
    if (const std::optional<int64_t> value = let.value.evaluate(lookup))
      known[let.name] = *value;
    else if (turns.contains(let.name))
      found.turns = &let;
    else if (names.contains(let.name))
      found.lets.push_back(&let);
  return found;
}

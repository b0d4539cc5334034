// fagen: where each op of a kernel stands.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "OpPlaces.h"

using namespace fagen;
using namespace fagen::ir;

OpPlaces::OpPlaces(Kernel &kernel) {
  for (Role &role : kernel.roles)
    add(role.body, nullptr);
}

void OpPlaces::add(Block &block, Op *around) {
  for (size_t i = 0; i < block.ops.size(); ++i) {
    places[block.ops[i].get()] = {&block, i, around};
    if (block.ops[i]->kind != OpKind::Vote)
      add(block.ops[i]->body, block.ops[i].get());
    else
      walk(block.ops[i]->body, [&](Op &op) { places[&op] = {&block, i, around}; });
  }
}

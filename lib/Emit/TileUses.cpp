// fagen: what tiles and fragments are to the ops of a kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TileUses.h"

#include "fagen/IR/Patterns.h"

using namespace fagen;
using namespace fagen::ir;

TileUses::TileUses(const Kernel &kernel) {
  for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
    if (buffer->guard)
      for (const Buffer *bar : {buffer->guard->full, buffer->guard->empty})
        guarded.try_emplace(bar, buffer.get());
  auto addProduct = [&](const auto &product) {
    add(product.a().buffer, TileUse::Left, product.form());
    add(product.b().buffer, TileUse::Right, product.form());
    add(product.acc().buffer, TileUse::Sum, product.form());
  };
  for (const Role &role : kernel.roles)
    walk(role.body, [&](const Op &op) {
      if (const auto product = dynCast<MmaOp>(op))
        addProduct(*product);
      else if (const auto issue = dynCast<MmaIssueOp>(op)) {
        addProduct(*issue);
        add(issue->held().buffer, TileUse::Held);
      } else if (const auto partial = dynCast<StorePartialOp>(op)) {
        add(partial->partial().buffer, TileUse::KeyWarps);
        add(partial->o().buffer, TileUse::Result);
      } else if (const auto staged = dynCast<StageOutputOp>(op)) {
        add(staged->dst().buffer, TileUse::Staged);
        add(staged->o().buffer, TileUse::Result);
      } else if (const auto store = dynCast<StoreOp>(op))
        add(store->o().buffer, TileUse::Result);
      else if (const auto split = dynCast<StoreSplitOp>(op))
        add(split->o().buffer, TileUse::Result);
      else if (const auto powers = asPowers(op))
        scores.insert(powers->scores->buffer);
    });
  weights = scores;
  for (const Role &role : kernel.roles)
    forEach<ConvertOp>(role.body, [&](ConvertOp<const Op> convert) {
      if (scores.contains(convert.s().buffer))
        weights.insert(convert.p().buffer);
    });
}

void TileUses::add(const Buffer *buffer, TileUse use, MmaForm form) {
  if (!buffer)
    return;
  Found &known = found[buffer];
  if (use < known.use)
    known = {use, form};
}

TileUse TileUses::of(const Buffer &buffer) const { return found.lookup(&buffer).use; }

bool TileUses::is(const Buffer &buffer, TileUse use, MmaForm form) const {
  const Found known = found.lookup(&buffer);
  return known.use == use && known.form == form;
}

bool TileUses::isOfScores(const Op &product) const {
  auto isOf = [this](const auto &of) { return scores.contains(of.acc().buffer) && !weights.contains(of.a().buffer); };
  const auto mma = dynCast<MmaOp>(product);
  const auto issue = dynCast<MmaIssueOp>(product);
  return (mma && isOf(*mma)) || (issue && isOf(*issue));
}

bool TileUses::isOfKeys(const Buffer &ring) const {
  const Buffer *const tile = ring.type == ElementType::MBarrier ? guarded.lookup(&ring) : &ring;
  return !tile || of(*tile) != TileUse::Left;
}

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
    add(product.a().buffer, TileUse::Left);
    add(product.b().buffer, TileUse::Right);
  };
  for (const Role &role : kernel.roles)
    walk(role.body, [&](const Op &op) {
      if (const auto product = dynCast<MmaOp>(op))
        addProduct(*product);
      else if (const auto issue = dynCast<MmaIssueOp>(op))
        addProduct(*issue);
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

void TileUses::add(const Buffer *buffer, TileUse use) {
  TileUse &known = found.try_emplace(buffer, TileUse::None).first->second;
  known = std::min(known, use);
}

TileUse TileUses::of(const Buffer &buffer) const {
  const auto known = found.find(&buffer);
  return known == found.end() ? TileUse::None : known->second;
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

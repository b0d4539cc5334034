// fagen: pass split-mask-loops: key tiles that need no masking get a loop of their own.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Interval analysis of the mask over the CTA's query rows gives two bounds: keys below `full_end` are seen by every
// row, keys from `key_end` on by none. Tiles below full_end are the interior loop: no mask op, no guard against rows
// that have seen nothing; tiles between are the edge loop; the rest is never visited.
//
//   keys   0 . . . . . . . full_end . . key_end . . . seq_kv
//   tiles  [ interior ... ][ edge .......... ]  not visited
//
// A loop that rescales lazily stays one (but with wgmma, whose steps overlap), with a branch around the mask: what the
// guards cost there is little, and with one text of the step ptxas has registers for larger tiles.
//
// With wgmma, where later rows see more, the last tile comes first: masked steps lie where no product runs under them
// (issue-products), and CTAs of one head, whose last keys differ, do not all ask for the same bytes at once. Not where
// warp groups can skip last tiles (skip-masked-tiles).
//
//   steps  [ edge ......][ interior ........ ]   step j has key tile key_tiles - (j + 1)

#include "fagen/Passes/Passes.h"

#include "ShapeCheck.h"
#include "fagen/IR/ExprAnalysis.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

/// Deep copy of an op: a body that stands in two loops must not share ops.
std::unique_ptr<Op> clone(const Op &op) {
  auto copy = std::make_unique<Op>(op.kind);
  copy->operands = op.operands;
  copy->attributes = op.attributes;
  copy->location = op.location;
  copy->note = op.note;
  for (const std::unique_ptr<Op> &inner : op.body.ops)
    copy->body.ops.push_back(clone(*inner));
  return copy;
}

/// Takes mask ops and guards out of a block.
void unmask(Block &block) {
  llvm::erase_if(block.ops, [](const std::unique_ptr<Op> &op) { return op->kind == OpKind::Mask; });
  for (std::unique_ptr<Op> &op : block.ops) {
    if (op->has("guard"))
      op->attributes["guard"] = int64_t(0);
    unmask(op->body);
  }
}

/// In the few steps of an edge loop a branch costs registers and gains nothing.
void rescaleAlways(Block &block) {
  for (std::unique_ptr<Op> &op : block.ops) {
    op->attributes.erase("lazy");
    rescaleAlways(op->body);
  }
}

bool rescalesLazily(const Block &block) {
  bool isLazy = false;
  walk(block, [&](const Op &op) { isLazy |= op.kind == OpKind::Rescale && op.isSet("lazy"); });
  return isLazy;
}

/// Masks nothing before tile full_tiles.
void branchAroundMask(Op &loop) {
  walk(loop.body, [&](Op &op) {
    if (op.kind == OpKind::Mask)
      op.attributes["when"] = lessEqual(variable("full_tiles"), variable(loop.text("variable").str()));
  });
}

std::unique_ptr<Op> interiorOf(const Op &loop) {
  std::unique_ptr<Op> interior = clone(loop);
  unmask(interior->body);
  return interior;
}

/// Step j of the loop has key tile key_tiles - (j + 1). Ring positions count steps.
void countBack(Op &loop) {
  const std::string step = loop.text("variable").str();
  const Expr tile = variable("key_tiles") - (variable(step) + constant(1));
  walk(loop.body, [&](Op &op) {
    for (const char *name : {"row", "key"})
      if (op.has(name))
        op.attributes[name] = op.expr(name).substitute(step, tile);
  });
}

/// The edge loop, and behind it the interior one.
void splitLastFirst(std::vector<std::unique_ptr<Op>> &ops, std::vector<std::unique_ptr<Op>>::iterator loop) {
  countBack(**loop);
  std::unique_ptr<Op> interior = interiorOf(**loop);
  const Expr masked = variable("key_tiles") - variable("full_tiles");
  (*loop)->attributes["end"] = masked;
  interior->attributes["begin"] = masked;
  interior->attributes["name"] = std::string("interior");
  ops.insert(std::next(loop), std::move(interior));
}

void splitFirstFirst(std::vector<std::unique_ptr<Op>> &ops, std::vector<std::unique_ptr<Op>>::iterator loop) {
  std::unique_ptr<Op> interior = interiorOf(**loop);
  interior->attributes["name"] = std::string("interior");
  interior->attributes["end"] = variable("full_tiles");
  (*loop)->attributes["begin"] = variable("full_tiles");
  ops.insert(loop, std::move(interior));
}

const Op *findMask(const Block &block) {
  const Op *mask = nullptr;
  walk(block, [&](const Op &op) {
    if (op.kind == OpKind::Mask)
      mask = &op;
  });
  return mask;
}

/// The variable of a loop that the bounds name: then they are none of the CTA. Empty where there is none.
std::string loopVariableIn(const MaskBounds &bounds, const Block &body) {
  std::string found;
  walk(body, [&](const Op &op) {
    if (op.kind == OpKind::Loop)
      for (const Expr &bound : {bounds.fullEnd, bounds.keyEnd})
        bound.forEachVariable([&](llvm::StringRef name) { found = name == op.text("variable") ? name.str() : found; });
  });
  return found;
}

/// One of the lets that addBounds replaces, if the bounds name it: it would then depend on itself.
std::string replacedLetIn(const MaskBounds &bounds) {
  std::string found;
  for (const Expr &bound : {bounds.fullEnd, bounds.keyEnd})
    bound.forEachVariable([&](llvm::StringRef name) {
      if (name == "key_tiles" || name == "full_tiles")
        found = name.str();
    });
  return found;
}

/// Whether tile j of the loop is keys [j * kTileKeys, (j + 1) * kTileKeys), for all tiles.
bool isOverKeyTiles(const Kernel &kernel, const Op &loop, const Op &mask) {
  const Expr keys = constant(kernel.constant("kTileKeys"));
  return loop.expr("begin") == constant(0) && loop.expr("end") == variable("key_tiles") &&
         mask.expr("key").substitute("kTileKeys", keys) == variable(loop.text("variable")) * keys;
}

/// The interior loop drops its mask, and its bounds are lets of the kernel: there can be one mask only.
bool fits(const Kernel &kernel, const Op &loop, const Op &mask, ShapeCheck &shape) {
  unsigned masks = 0;
  for (const Role &role : kernel.roles)
    masks += countOf(role.body, OpKind::Mask);
  return shape.needs(masks == 1, "a single mask in the kernel", mask.location) &&
         shape.needs(isOverKeyTiles(kernel, loop, mask),
                     "a loop from 0 to key_tiles whose mask begins at key j * kTileKeys", loop.location) &&
         shape.needs(kernel.backend != "wgmma" || kernel.constant("kRowWarps") >= kGroupWarps,
                     "four kRowWarps or more with wgmma");
}

bool beginsWithLast(const Kernel &kernel, const Op &mask) {
  return kernel.backend == "wgmma" && seesMoreInLaterRows(kernel) &&
         !groupsSkipKeyTiles(kernel, mask, kernel.constant("kRowWarps") / kGroupWarps);
}

/// Loop bounds as run-time values: counts of whole tiles inside [0, end), never negative.
void addBounds(Kernel &kernel, const MaskBounds &bounds) {
  const Expr keys = variable("kTileKeys"), zero = constant(0);
  llvm::erase_if(kernel.lets, [](const Let &let) { return let.name == "key_tiles" || let.name == "full_tiles"; });
  kernel.lets.push_back({"full_tiles", floorDiv(max(bounds.fullEnd, zero), keys),
                         "split-mask-loops: key tiles that every row sees whole"});
  kernel.lets.push_back(
      {"key_tiles", ceilDiv(max(bounds.keyEnd, zero), keys), "split-mask-loops: key tiles that some row sees"});
}

} // namespace

bool fagen::splitMaskLoops(Kernel &kernel, PassContext &context) {
  ShapeCheck shape(kernel, context, "split-mask-loops");
  for (Role &role : kernel.roles) {
    std::vector<std::unique_ptr<Op>> &ops = role.body.ops;
    auto loop = llvm::find_if(ops, [](const std::unique_ptr<Op> &op) { return op->kind == OpKind::Loop; });
    if (loop == ops.end())
      continue;
    const Op *mask = findMask((*loop)->body);
    if (!mask)
      continue;
    const MaskBounds bounds =
        analyzeMask(mask->expr("predicate"), "q", "k", mask->expr("row"), kernel.constant("kTileRows"));
    if (const std::string name = loopVariableIn(bounds, role.body); !name.empty()) {
      context.diags.error(mask->location, "which keys the mask lets through depends on '" + name +
                                              "', the variable of a loop; it may depend on lets and run-time values");
      return false;
    }
    if (const std::string name = replacedLetIn(bounds); !name.empty()) {
      context.diags.error(mask->location, "which keys the mask lets through depends on '" + name +
                                              "', which is to be computed from that; it may depend on other lets and "
                                              "run-time values");
      return false;
    }
    if (!fits(kernel, **loop, *mask, shape))
      return false;
    addBounds(kernel, bounds);
    if (kernel.backend != "wgmma" && rescalesLazily((*loop)->body)) {
      (*loop)->attributes["name"] = std::string("tile");
      branchAroundMask(**loop);
      continue;
    }
    Op &edge = **loop;
    if (beginsWithLast(kernel, *mask))
      splitLastFirst(ops, loop);
    else
      splitFirstFirst(ops, loop);
    rescaleAlways(edge.body);
    edge.attributes["name"] = std::string("edge");
  }
  kernel.phase = Phase::Split;
  return true;
}

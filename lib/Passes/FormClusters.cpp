// fagen: pass form-clusters: CTAs of a cluster share their copies of K and V.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CTAs of a cluster work on neighbouring tiles of query rows of one head: they want the same tiles of K and V at the
// same time. So each copies a share of the rows, the n-th CTA the n-th, and lets it land in all of them at the same
// place. Half the reads of the L2 cache are left, and half of what they cost. In every CTA
//
//   k_full    expects the bytes of the whole tile, whoever brings them
//   k_empty   counts the groups of all CTAs: a copy from here lands in their slots, too
//
// Nothing else of another CTA is touched. What is, must be there and must be left: all come to a barrier of the cluster
// when their mbarriers are made, and at their end. Only copies whose rows are no matter of the CTA's own are shared:
// Q's are.

#include "fagen/Passes/Passes.h"

#include "ShapeCheck.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

bool dependsOnTile(const Expr &expr) {
  bool depends = false;
  expr.forEachVariable([&](llvm::StringRef name) { depends |= name == "row_begin"; });
  return depends;
}

class ClusterFormer {
public:
  explicit ClusterFormer(Kernel &kernel) : kernel(kernel), ctas(kernel.constant("kCluster")) {}

  bool fits(ShapeCheck &shape) const {
    bool isShared = false, isLeft = true;
    for (const Role &role : kernel.roles) {
      if (!shape.needs(firstOf(role.body, OpKind::Barrier), "a barrier at the head of role " + role.name))
        return false;
      walk(role.body, [&](const Op &op) {
        isShared |= op.isSet("cluster");
        isLeft &= !isForAll(op) || emptyOf(op);
      });
    }
    return shape.needs(!isShared, "copies that no cluster shares yet") &&
           shape.needs(isLeft, "an mbarrier _empty of each ring");
  }

  void run() {
    for (Role &role : kernel.roles)
      walk(role.body, [&](Op &op) { share(op); });
    for (Role &role : kernel.roles) {
      walk(role.body, [&](Op &op) { count(op); });
      meet(role.body);
    }
  }

private:
  /// Whether it copies what all CTAs of the cluster want.
  static bool isForAll(const Op &op) { return op.kind == OpKind::CopyIssue && !dependsOnTile(op.expr("row")); }

  Buffer *emptyOf(const Op &copy) const { return kernel.buffer(copy.operand("dst").buffer->name + "_empty"); }

  void share(Op &op) {
    if (!isForAll(op))
      return;
    op.attributes["cluster"] = int64_t(1);
    empties.insert(emptyOf(op));
  }

  /// Who has left a slot says so in all CTAs.
  void count(Op &op) const {
    if (op.kind == OpKind::MbarrierInit && empties.contains(op.operand("bar").buffer))
      op.attributes["arrivals"] = op.integer("arrivals") * ctas;
    if (op.kind == OpKind::Arrive && empties.contains(op.operand("bar").buffer)) {
      op.attributes["cluster"] = int64_t(1);
      op.note += ", for all CTAs of the cluster";
    }
  }

  void meet(Block &body) const {
    auto first = llvm::find_if(body.ops, [](const auto &op) { return op->kind == OpKind::Barrier; });
    (*first)->attributes["scope"] = std::string("cluster");
    (*first)->note += " in all CTAs of the cluster";
    auto last = std::make_unique<Op>(OpKind::Barrier);
    last->attributes["scope"] = std::string("cluster");
    last->location = location();
    last->note = "form-clusters: nobody copies to a CTA, or arrives in it, that has ended";
    body.ops.push_back(std::move(last));
  }

  const Location &location() const {
    return llvm::find_if(kernel.constants, [](const Constant &constant) { return constant.name == "kCluster"; })
        ->location;
  }

  Kernel &kernel;
  const int64_t ctas;
  llvm::SmallSetVector<Buffer *, 4> empties; ///< of the rings that are filled by all CTAs
};

} // namespace

bool fagen::formClusters(Kernel &kernel, PassContext &context) {
  if (!kernel.hasConstant("kCluster") || kernel.roles.size() != 2)
    return false;
  ClusterFormer former(kernel);
  ShapeCheck shape(kernel, context, "form-clusters");
  if (!former.fits(shape))
    return false;
  former.run();
  return true;
}

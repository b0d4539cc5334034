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
//
// Applies where a spec asks for it (cluster), or the grid has clusters. Their CTAs differ in the fastest index.

#include "fagen/IR/Queries.h"
#include "fagen/Passes/Passes.h"

#include "AskedNumbers.h"
#include "ShapeCheck.h"
#include "fagen/IR/ExprAnalysis.h"
#include "fagen/IR/GridQueries.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

class ClusterFormer {
public:
  ClusterFormer(Kernel &kernel, int64_t ctas, const Location &location)
      : kernel(kernel), ctas(ctas), location(location), ofTile(namesOfTile(kernel)) {}

  static bool sharesCopies(const Kernel &kernel) {
    bool isShared = false;
    for (const Role &role : kernel.roles)
      forEach<CopyIssueOp>(role.body, [&](CopyIssueOp<const Op> copy) { isShared |= copy.cluster(); });
    return isShared;
  }

  bool fits(ShapeCheck &shape) const {
    bool isLeft = true;
    for (const Role &role : kernel.roles)
      forEach<CopyIssueOp>(
          role.body, [&](CopyIssueOp<const Op> copy) { isLeft &= !isForAll(copy) || emptyOf(*copy.dst().buffer); });
    return shape.needs(!sharesCopies(kernel), "copies that no cluster shares yet") &&
           shape.needs(isLeft, "a guard of each ring that says when its slots are left") &&
           llvm::all_of(kernel.roles, [&](Role &role) {
             return shape.needs(headBarrier(role.body) != role.body.ops.end(),
                                "a barrier at the head of role " + role.name);
           });
  }

  void run() {
    for (Role &role : kernel.roles)
      forEach<CopyIssueOp>(role.body, [&](CopyIssueOp<> copy) { share(copy); });
    for (Role &role : kernel.roles) {
      walk(role.body, [&](Op &op) { count(op); });
      meet(role.body);
    }
  }

private:
  /// What CTAs of a cluster differ in.
  static llvm::StringSet<> namesOfTile(const Kernel &kernel) {
    llvm::StringSet<> names;
    names.insert(fastestOf(kernel));
    return withFollowers(kernel, std::move(names));
  }

  /// Whether it copies what all CTAs of the cluster want.
  template <typename Copy> bool isForAll(Copy copy) const {
    bool isOwn = false;
    auto look = [&](const Expr &expr) { isOwn |= usesAny(expr, ofTile); };
    forEachExpr(std::as_const(*copy), look);
    if (const std::optional<AddressMap> &map = copy.src().buffer->map)
      llvm::for_each(map->at, look);
    return !isOwn;
  }

  void share(CopyIssueOp<> copy) {
    if (!isForAll(copy))
      return;
    copy.setCluster(true);
    empties.insert(emptyOf(*copy.dst().buffer));
  }

  /// Who has left a slot says so in all CTAs.
  void count(Op &op) const {
    if (const auto init = dynCast<MbarrierInitOp>(op); init && empties.contains(init->bar().buffer))
      init->setArrivals(init->arrivals() * ctas);
    if (const auto arrive = dynCast<ArriveOp>(op); arrive && empties.contains(arrive->bar().buffer)) {
      arrive->setCluster(true);
      op.note += ", for all CTAs of the cluster";
    }
  }

  void meet(Block &body) const {
    const auto first = headBarrier(body);
    BarrierOp(**first).setScope(BarrierScope::Cluster);
    (*first)->note += " in all CTAs of the cluster";
    body.ops.push_back(
        makeBarrier({.scope = BarrierScope::Cluster,
                     .location = location,
                     .note = "form-clusters: nobody copies to a CTA, or arrives in it, that has ended"}));
  }

  Kernel &kernel;
  const int64_t ctas;
  const Location location;
  const llvm::StringSet<> ofTile;
  llvm::SmallSetVector<Buffer *, 4> empties; ///< of the rings that are filled by all CTAs
};

} // namespace

bool fagen::formClusters(Kernel &kernel, PassContext &context) {
  const Constant *const asked = askedNumber(kernel, OptionKey::Cluster);
  const bool isOfGrid = kernel.grid.hasClusters() && !ClusterFormer::sharesCopies(kernel);
  if (fillersOf(kernel).empty() || (!asked && !isOfGrid))
    return false;
  const int64_t ctas = asked ? asked->value : kernel.grid.cluster;
  ClusterFormer former(kernel, ctas, asked ? asked->location : kernel.location);
  ShapeCheck shape(kernel, context, "form-clusters");
  if (!former.fits(shape))
    return false;
  former.run();
  kernel.grid.isPersistent |= kernel.grid.indices.empty(); // as attention's clusters are
  kernel.grid.cluster = unsigned(ctas);
  return true;
}

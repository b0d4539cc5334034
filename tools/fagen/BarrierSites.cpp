// fagen: what each op that synchronises covers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "BarrierSites.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace fagen {

StringRef toString(Part part) {
  static constexpr StringLiteral names[] = {"needed", "redundant", "first", "last", "alone"};
  return names[unsigned(part)];
}

/// With what it waits for or arrives at.
static std::string describe(const ir::Op &op) {
  if (op.kind == ir::OpKind::Barrier)
    return op.text(ir::Attr::Scope).str() + " barrier";
  std::string text = ir::opInfo(op.kind).name.str();
  if (op.kind == ir::OpKind::Wait || op.kind == ir::OpKind::Arrive)
    text += " " + op.operands.front().buffer->name;
  if (op.kind == ir::OpKind::Fence)
    text += " " + op.text(ir::Attr::Kind).str();
  if (op.has(ir::Attr::Pending))
    text += " " + std::to_string(op.integer(ir::Attr::Pending));
  return text;
}

static std::string bufferOf(const Access &first, const Access &then) {
  const std::string name = first.buffer->name;
  return then.buffer == first.buffer ? name : name + "/" + then.buffer->name;
}

namespace {

/// Of a role whose threads meet at barriers and wait for their own copies.
class PathSites {
public:
  PathSites(const ir::Kernel &kernel, const ir::Role &role) : info(kernel, role) {}

  std::vector<CoveredHazard> hazardsOf(const ir::Op &op) const {
    std::vector<CoveredHazard> covered;
    for (const Hazard &hazard : info.hazards())
      if (op.kind == ir::OpKind::CopyWait)
        addWait(covered, op, hazard);
      else
        addBarrier(covered, op, hazard);
    return covered;
  }

private:
  static CoveredHazard makeCovered(const Hazard &hazard, Part part) {
    return {part,           hazard.kind,     bufferOf(hazard.source, hazard.sink),  hazard.source.op,
            hazard.sink.op, hazard.distance, toString(hazard.conflict.scope).str(), {}};
  }

  void addWait(std::vector<CoveredHazard> &covered, const ir::Op &wait, const Hazard &hazard) const {
    if (!is_contained(hazard.waits, &wait))
      return;
    covered.push_back(makeCovered(hazard, Part::Needed));
    covered.back().partners = barriersOn(hazard);
  }

  void addBarrier(std::vector<CoveredHazard> &covered, const ir::Op &barrier, const Hazard &hazard) const {
    const SmallVector<const ir::Op *, 2> barriers = barriersOn(hazard);
    if (!is_contained(barriers, &barrier))
      return;
    covered.push_back(makeCovered(hazard, info.isCovered(hazard, &barrier) ? Part::Redundant : Part::Needed));
    covered.back().partners = hazard.waits;
    for (const ir::Op *other : barriers)
      if (other != &barrier)
        covered.back().partners.push_back(other);
  }

  /// All barriers that order the hazard on some path.
  SmallVector<const ir::Op *, 2> barriersOn(const Hazard &hazard) const {
    SmallVector<const ir::Op *, 2> barriers;
    if (hazard.conflict.scope != Scope::Thread)
      for (const Path &path : hazard.paths)
        for (const ir::Op *barrier : info.covering(hazard, path))
          if (!is_contained(barriers, barrier))
            barriers.push_back(barrier);
    return barriers;
  }

  const HazardInfo info;
};

/// Of roles that hand each other what they access.
class ChainSites {
public:
  explicit ChainSites(const ir::Kernel &kernel) : info(kernel) {
    for (const ir::Role &role : kernel.roles)
      ir::walk(role.body, [&](const ir::Op &op) { roleOf[&op] = &role; });
  }

  std::vector<CoveredHazard> hazardsOf(const ir::Op &op) const {
    std::vector<CoveredHazard> covered;
    for (const OrderedPair *pair : info.orderedBy(op))
      covered.push_back(makeCovered(*pair, op));
    return covered;
  }

private:
  CoveredHazard makeCovered(const OrderedPair &pair, const ir::Op &op) const {
    const bool isAlone = pair.release == pair.acquire || !pair.release || !pair.acquire;
    const bool isFirst = pair.release == &op;
    CoveredHazard covered{isAlone   ? Part::Alone
                          : isFirst ? Part::First
                                    : Part::Last,
                          pair.kind,
                          bufferOf(pair.source, pair.sink),
                          pair.source.op,
                          pair.sink.op,
                          pair.distance,
                          roleOf.lookup(pair.source.op) == roleOf.lookup(pair.sink.op) ? "role" : "roles",
                          {}};
    if (!isAlone)
      covered.partners.push_back(isFirst ? pair.acquire : pair.release);
    return covered;
  }

  const OrderInfo info;
  DenseMap<const ir::Op *, const ir::Role *> roleOf;
};

} // namespace

static RoleSites sitesOf(const ir::Role &role, bool isOrdered,
                         function_ref<std::vector<CoveredHazard>(const ir::Op &)> hazardsOf) {
  RoleSites result{role.name, isOrdered, {}};
  ir::walk(role.body, [&](const ir::Op &op) {
    if (ir::opInfo(op.kind).hasSite)
      result.sites.push_back({&op, describe(op), hazardsOf(op)});
  });
  return result;
}

std::vector<RoleSites> findSites(const ir::Kernel &kernel) {
  std::vector<RoleSites> result;
  if (needsOrder(kernel)) {
    const ChainSites chains(kernel);
    for (const ir::Role &role : kernel.roles)
      result.push_back(sitesOf(role, true, [&](const ir::Op &op) { return chains.hazardsOf(op); }));
    return result;
  }
  for (const ir::Role &role : kernel.roles) {
    const PathSites paths(kernel, role);
    result.push_back(sitesOf(role, false, [&](const ir::Op &op) { return paths.hazardsOf(op); }));
  }
  return result;
}

} // namespace fagen

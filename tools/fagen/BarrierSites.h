// fagen: what each op that synchronises covers, as --emit=barriers shows it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Analysis/Order.h"

namespace fagen {

/// What a site is for a hazard.
enum class Part : uint8_t {
  Needed,    ///< the hazard is open without it
  Redundant, ///< others cover the hazard as well
  First,     ///< between roles: of the ops that hand the first access on, it is the first one
  Last,      ///< and here the last one
  Alone      ///< both
};
llvm::StringRef toString(Part part);

/// A hazard that a site takes part in covering.
struct CoveredHazard {
  Part part = Part::Needed;
  HazardKind kind = HazardKind::Raw;
  std::string buffer; ///< "q/k": of both accesses
  const ir::Op *first = nullptr, *then = nullptr;
  std::optional<int64_t> distance;
  std::string threads; ///< how far apart they are; between roles "role" or "roles": whether they are of one
  llvm::SmallVector<const ir::Op *, 2> partners;
};

struct BarrierSite {
  const ir::Op *op = nullptr;
  std::string what; ///< "cta barrier", "wait k_full"
  std::vector<CoveredHazard> hazards;
};

/// The sites of one role, in program order.
struct RoleSites {
  std::string role;
  bool isOrdered = false; ///< by Analysis/Order.h, which says who orders, not what is open without a site
  std::vector<BarrierSite> sites;
};

/// Of each role of the kernel.
std::vector<RoleSites> findSites(const ir::Kernel &kernel);

} // namespace fagen

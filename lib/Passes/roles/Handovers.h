// fagen: buffers that a role fills for others: who fills a position, who uses it, and when a use is done.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All of it follows from the order of ops, and from how they synchronise (fagen/IR/Sync.h). Mbarriers take no part.
#pragma once

#include "../OpPlaces.h"
#include "fagen/IR/Sync.h"

namespace fagen {

/// An op that fills a position, or uses it.
struct HandoverUse {
  ir::Op *op = nullptr;
  ir::Expr position;        ///< null: of a buffer that is no ring, and is filled once
  ir::Op *anchor = nullptr; ///< the op, or its vote; where it has no position that one of the role's body that it is in

  const ir::SyncInfo &sync() const { return ir::syncOf(*op); }
  /// By the lanes of warps themselves.
  bool isByLanes() const { return sync().agent == ir::Agent::Threads && !sync().isByActor; }
  /// Whether the vote that it is in orders it with the async proxy.
  bool isFenced() const { return anchor->kind == ir::OpKind::Vote && anchor->isSet(ir::Attr::Fenced); }
};

/// What a block does with a position, in program order.
using HandoverSite = std::vector<HandoverUse>;

struct HandoverUser {
  ir::Role *role = nullptr;
  std::vector<HandoverSite> sites;
};

/// Buffers that a role fills at the same mbarrier, and other roles use.
struct Handover {
  llvm::SmallVector<ir::Buffer *, 2> buffers;
  ir::Buffer *full = nullptr; ///< null: there is none yet
  ir::Role *filler = nullptr;
  std::vector<HandoverSite> fills;
  std::vector<HandoverUser> users;

  const ir::Buffer &first() const { return *buffers.front(); }
  ir::Means filledBy() const { return fills.front().front().sync().done; }
  bool isOfThreadCopies() const { return filledBy() == ir::Means::CopyGroups; }
  bool isBulk() const { return filledBy() == ir::Means::Phases; }
  /// Whether some use is what `isWanted` says.
  bool hasUse(llvm::function_ref<bool(const HandoverUse &)> isWanted) const;
};

/// In the order of their first fills. A buffer's filler is the first role that writes it.
std::vector<Handover> findHandovers(ir::Kernel &kernel, const OpPlaces &places);

/// When all of a site is done.
struct Completion {
  ir::Op *at = nullptr;                ///< an op of the site's block; null: nothing says that it is done
  unsigned distance = 0;               ///< so many steps of the loop later
  llvm::SmallVector<ir::Op *, 2> tail; ///< after the loop: what says so of its step n from the end
};
Completion completionOf(const HandoverSite &site, const OpPlaces &places);

} // namespace fagen

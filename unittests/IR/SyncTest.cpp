// fagen: tests of how ops synchronise.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/Sync.h"
#include "fagen/IR/OpClasses.h"

#include <gtest/gtest.h>

using namespace fagen::ir;

TEST(Sync, OpWithoutRowIsDoneByThreadsWhenItIs) {
  const SyncInfo &sync = syncOf(Op(OpKind::Reduce));
  EXPECT_EQ(sync.agent, Agent::Threads);
  EXPECT_EQ(sync.done, Means::Nothing);
  EXPECT_EQ(sync.needsFence, Means::AsyncFence);
  EXPECT_FALSE(synchronises(sync));
}

TEST(Sync, KindOfCopyDecides) {
  Op copy(OpKind::CopyIssue);
  copy.set(Attr::Kind, std::string("bulk"));
  EXPECT_EQ(syncOf(copy).done, Means::Phases);
  EXPECT_TRUE(syncOf(copy).isByActor);
  EXPECT_TRUE(synchronises(syncOf(copy)));
  copy.set(Attr::Kind, std::string("cp_async"));
  EXPECT_EQ(syncOf(copy).agent, Agent::CpAsync);
  EXPECT_EQ(syncOf(copy).done, Means::CopyGroups);
  copy.set(Attr::Kind, std::string("ld_st"));
  EXPECT_EQ(syncOf(copy).agent, Agent::Threads);
}

TEST(Sync, GroupsAreClosedAndWaitedForByTheSameMeans) {
  EXPECT_EQ(syncOf(Op(OpKind::MmaIssue)).done, Means::ProductGroups);
  EXPECT_EQ(syncOf(Op(OpKind::MmaCommit)).releases, Means::ProductGroups);
  EXPECT_EQ(syncOf(Op(OpKind::MmaWait)).acquires, Means::ProductGroups);
}

TEST(Sync, OnlyScopesBeyondARoleAreBetweenRoles) {
  Op barrier(OpKind::Barrier);
  for (const BarrierScope scope : kBarrierScopes) {
    BarrierOp(barrier).setScope(scope);
    EXPECT_TRUE(isBarrier(syncOf(barrier).acquires));
    EXPECT_EQ(isBetweenRoles(syncOf(barrier).acquires), scope == BarrierScope::Cluster);
  }
  EXPECT_TRUE(isBetweenRoles(syncOf(Op(OpKind::PassTurn)).releases));
  EXPECT_FALSE(isBetweenRoles(syncOf(Op(OpKind::CopyWait)).acquires));
}

TEST(Sync, InitialisationsAndPhasesMayNotBeLeftOut) {
  EXPECT_TRUE(synchronises(syncOf(Op(OpKind::MbarrierInit))));
  EXPECT_TRUE(synchronises(syncOf(Op(OpKind::HandTile))));
  EXPECT_FALSE(synchronises(syncOf(Op(OpKind::CombineLast))));
}

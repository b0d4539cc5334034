// fagen: what place-barriers puts into each kind of kernel, and what verify-barriers says when it is taken out again.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TestKernels.h"

#include "fagen/Analysis/Hazards.h"

#include "gtest/gtest.h"

using namespace fagen;
using namespace fagen::ir;
using namespace fagen::test;

namespace {

/// Whether verify-barriers accepts the kernel; its messages are dropped.
bool isVerified(Lowering &lowering) {
  llvm::SourceMgr sources;
  std::string text;
  llvm::raw_string_ostream stream(text);
  Diagnostics diags(sources, stream);
  PassContext context{diags, nullptr, nullptr};
  verifyBarriers(lowering.kernel, context);
  const bool sound = lowering.kernel.phase == Phase::Verified;
  lowering.kernel.phase = Phase::Placed;
  return sound;
}

std::string labelOf(const Shape &shape) {
  return std::string(shape.name) + " " + toString(shape.copy).str() + " stages " + std::to_string(shape.stages);
}

/// The block that holds the op.
Block *blockOf(Block &block, const Op *wanted) {
  for (std::unique_ptr<Op> &op : block.ops) {
    if (op.get() == wanted)
      return &block;
    if (Block *found = blockOf(op->body, wanted))
      return found;
  }
  return nullptr;
}

/// Takes the op out while `check` runs.
template <class Check> void without(Lowering &lowering, Op *op, Check check) {
  Block *block = blockOf(lowering.body(), op);
  auto at = llvm::find_if(block->ops, [&](const std::unique_ptr<Op> &other) { return other.get() == op; });
  const size_t index = at - block->ops.begin();
  std::unique_ptr<Op> taken = std::move(*at);
  block->ops.erase(at);
  check();
  block->ops.insert(block->ops.begin() + index, std::move(taken));
}

TEST(Placement, EveryPolicyIsVerified) {
  for (const Shape &shape : shapes())
    for (BarrierPolicy policy : {BarrierPolicy::Minimal, BarrierPolicy::Light, BarrierPolicy::Legacy}) {
      SCOPED_TRACE(labelOf(shape) + " " + toString(policy).str());
      Lowering lowering(shape, policy);
      lowering.lower();
      PassContext context = lowering.context();
      placeBarriers(lowering.kernel, context);
      verifyBarriers(lowering.kernel, context);
      EXPECT_EQ(lowering.kernel.phase, Phase::Verified);
      EXPECT_EQ(lowering.messages, "");
    }
}

TEST(Placement, TensorCoreStepsHaveTwoCtaBarriers) {
  for (const Shape &shape : shapes()) {
    if (shape.mma != Mma::MmaSync || shape.warps == 1)
      continue;
    SCOPED_TRACE(labelOf(shape));
    Lowering lowering(shape);
    lowering.lower();
    PassContext context = lowering.context();
    placeBarriers(lowering.kernel, context);
    EXPECT_EQ(lowering.countIn(0, "cta"), 2u);
    EXPECT_EQ(lowering.countIn(0, "warp"), 0u);
    // A tile of rows crosses only a few tiles of keys: those steps may end before a slot is used twice.
    EXPECT_LE(lowering.countIn(1, "cta"), 2u);
    EXPECT_EQ(lowering.countIn(1, "warp"), 0u);
  }
}

// With two steps at most and three slots nothing in them is used twice, but the first one's V comes from the loop
// before.
TEST(Placement, FewStepsNeedFewBarriers) {
  Lowering lowering({"plain", Mma::MmaSync, Copy::LdSt, 16, 64, 4, 3, 64, 1, 4});
  lowering.lower();
  PassContext context = lowering.context();
  placeBarriers(lowering.kernel, context);
  EXPECT_EQ(lowering.countIn(0, "cta"), 2u);
  EXPECT_LT(lowering.countIn(1, "cta"), 2u);
  EXPECT_TRUE(isVerified(lowering));
}

TEST(Placement, OneWarpNeedsNoCtaBarrier) {
  for (Copy copy : {Copy::CpAsync, Copy::LdSt}) {
    Lowering lowering({"one_warp", Mma::MmaSync, copy, 16, 32, 1, 2});
    lowering.lower();
    PassContext context = lowering.context();
    placeBarriers(lowering.kernel, context);
    EXPECT_EQ(lowering.count("cta"), 0u);
    EXPECT_EQ(lowering.countIn(0, "warp"), 2u);
  }
}

// The barrier that publishes V also orders what a warp's lanes exchange through P.
TEST(Placement, ScalarStepsHaveTwoBarriers) {
  for (unsigned stages : {1u, 2u, 3u}) {
    Lowering lowering({"scalar", Mma::Scalar, Copy::LdSt, 32, 64, 4, stages});
    lowering.lower();
    PassContext context = lowering.context();
    placeBarriers(lowering.kernel, context);
    EXPECT_EQ(lowering.countIn(0, "cta"), stages == 1 ? 2u : 1u);
    EXPECT_EQ(lowering.countIn(0, "warp"), stages == 1 ? 0u : 1u);
    EXPECT_LE(lowering.countIn(1, "cta"), stages == 1 ? 2u : 1u);
  }
}

TEST(Placement, LegacyHasSixBarriersAStepAndLightFour) {
  const Shape shape{"scalar", Mma::Scalar, Copy::LdSt, 32, 64, 4, 1};
  const std::pair<BarrierPolicy, unsigned> policies[] = {{BarrierPolicy::Legacy, 6}, {BarrierPolicy::Light, 4}};
  for (auto [policy, barriers] : policies) {
    Lowering lowering(shape, policy);
    lowering.lower();
    PassContext context = lowering.context();
    placeBarriers(lowering.kernel, context);
    EXPECT_EQ(lowering.countIn(0, "cta"), barriers);
    EXPECT_EQ(lowering.countIn(1, "cta"), barriers);
  }
}

TEST(Placement, WhatAPolicyLacksIsAddedWithARemark) {
  // With reduce = shared a warp's lanes exchange maxima where light has no place.
  Lowering lowering({"scratch", Mma::Scalar, Copy::LdSt, 16, 32, 4, 1, 64, 0, 1, OperandPlace::Shared, Reduce::Shared},
                    BarrierPolicy::Light);
  lowering.diags.setShowRemarks(true);
  lowering.lower();
  PassContext context = lowering.context();
  placeBarriers(lowering.kernel, context);
  EXPECT_NE(lowering.messages.find("remark: barriers = light leaves a hazard open; warp barrier added before"),
            std::string::npos)
      << lowering.messages;
  EXPECT_TRUE(isVerified(lowering));
}

TEST(Placement, AtPutsBarriersAtItsPlacesOnly) {
  const Shape shape{"prefill", Mma::MmaSync, Copy::CpAsync, 64, 32, 4, 2};
  Lowering enough(shape, BarrierPolicy::At, {"after_load"});
  enough.lower();
  PassContext context = enough.context();
  placeBarriers(enough.kernel, context);
  EXPECT_EQ(enough.messages, "");
  EXPECT_EQ(enough.countIn(0, "cta"), 2u); // after K and after V
  EXPECT_TRUE(isVerified(enough));

  Lowering idle(shape, BarrierPolicy::At, {"after_load", "after_exp"});
  idle.lower();
  PassContext idleContext = idle.context();
  placeBarriers(idle.kernel, idleContext);
  EXPECT_NE(idle.messages.find("warning: place after_exp covers no hazard that the others leave open"),
            std::string::npos)
      << idle.messages;

  Lowering open(shape, BarrierPolicy::At, {"after_exp"});
  open.lower();
  PassContext openContext = open.context();
  placeBarriers(open.kernel, openContext);
  EXPECT_TRUE(open.diags.hasErrors());
  EXPECT_FALSE(open.diags.hasInternalErrors());
  EXPECT_NE(open.messages.find("hazards open: RAW hazard on q: no CTA barrier between copy_issue"), std::string::npos)
      << open.messages;
}

TEST(Placement, WhatVerificationFindsInLoweredKernelsIsOurMistake) {
  Lowering lowering({"prefill", Mma::MmaSync, Copy::CpAsync, 64, 32, 4, 2});
  lowering.lower();
  PassContext context = lowering.context();
  placeBarriers(lowering.kernel, context);
  for (Op *op : lowering.sites())
    if (op->kind == OpKind::Barrier)
      BarrierOp(*op).setScope(BarrierScope::Warp);
  verifyBarriers(lowering.kernel, context);
  EXPECT_NE(lowering.kernel.phase, Phase::Verified);
  EXPECT_TRUE(lowering.diags.hasInternalErrors());
}

TEST(Placement, PipelineWaitsAreExact) {
  for (unsigned stages : {1u, 2u, 3u, 4u}) {
    Lowering lowering({"prefill", Mma::MmaSync, Copy::CpAsync, 64, 32, 4, stages});
    lowering.lower();
    for (const Op *wait : lowering.sites())
      EXPECT_EQ(wait->integer(Attr::Pending), 2 * (stages - 1));
    Lowering scalar({"scalar", Mma::Scalar, Copy::CpAsync, 32, 64, 4, stages});
    scalar.lower();
    for (const Op *wait : scalar.sites())
      EXPECT_EQ(wait->integer(Attr::Pending), stages - 1);
  }
}

/// Takes out, and weakens, each barrier and wait in turn.
class Mutation {
public:
  explicit Mutation(const Shape &shape, BarrierPolicy policy) : lowering(shape, policy) {
    lowering.lower();
    PassContext context = lowering.context();
    placeBarriers(lowering.kernel, context);
  }

  /// For minimal every site is needed, for others what the analysis of the whole kernel says: it does not try.
  void run(bool expectNeeded) {
    ASSERT_TRUE(isVerified(lowering)) << lowering.messages;
    const HazardInfo info(lowering.kernel, lowering.kernel.roles.front());
    for (Op *op : lowering.sites()) {
      SCOPED_TRACE("site " + std::to_string(op->site));
      const bool needed = expectNeeded || isNeeded(info, *op, Scope::Warp);
      without(lowering, op, [&] { EXPECT_EQ(isVerified(lowering), !needed); });
      const auto attributes = op->attributes;
      const bool strengthNeeded = expectNeeded || isNeeded(info, *op, Scope::Cta);
      if (weaken(*op)) {
        EXPECT_EQ(isVerified(lowering), !strengthNeeded);
      }
      op->attributes = attributes;
      mutations += 2;
    }
    EXPECT_TRUE(isVerified(lowering));
  }

  unsigned mutations = 0;

private:
  /// Whether a hazard that reaches at least as far as `scope` would be open without the op.
  static bool isNeeded(const HazardInfo &info, const Op &op, Scope scope) {
    return op.kind == OpKind::CopyWait || llvm::any_of(info.hazards(), [&](const Hazard &hazard) {
             return hazard.conflict.scope >= scope && info.isCovered(hazard) && !info.isCovered(hazard, &op);
           });
  }

  static bool weaken(Op &op) {
    if (const auto wait = dynCast<CopyWaitOp>(op))
      wait->setPending(wait->pending() + 1);
    else if (const BarrierOp barrier(op); barrier.scope() == BarrierScope::Cta)
      barrier.setScope(BarrierScope::Warp);
    else
      return false;
    return true;
  }

  Lowering lowering;
};

TEST(Mutation, NothingThatMinimalPlacesCanGo) {
  unsigned mutations = 0;
  for (const Shape &shape : shapes()) {
    SCOPED_TRACE(labelOf(shape));
    Mutation mutation(shape, BarrierPolicy::Minimal);
    mutation.run(true);
    mutations += mutation.mutations;
  }
  EXPECT_GT(mutations, 300u);
}

TEST(Mutation, WhatTheAnalysisNeedsOfOtherPoliciesCannotGo) {
  for (const Shape &shape : shapes())
    for (BarrierPolicy policy : {BarrierPolicy::Light, BarrierPolicy::Legacy}) {
      if (shape.stages > 2) // says nothing new, and takes long
        continue;
      SCOPED_TRACE(labelOf(shape) + " " + toString(policy).str());
      Mutation(shape, policy).run(false);
    }
}

} // namespace

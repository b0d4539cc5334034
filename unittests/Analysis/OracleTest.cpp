// fagen: the analysis against a simulation that shares nothing with it but the enumeration of accesses.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runs are much longer than the timelines of the analysis.

#include "Simulator.h"
#include "TestKernels.h"

#include "gtest/gtest.h"

using namespace fagen;
using namespace fagen::ir;
using namespace fagen::test;

namespace {

/// full_tiles, key_tiles: none, one, shallower than any ring, and long runs of either loop and of both.
constexpr std::pair<int64_t, int64_t> kRuns[] = {{0, 0}, {0, 1},   {1, 1},  {1, 2}, {0, 2},
                                                 {3, 4}, {13, 13}, {0, 14}, {9, 17}};

bool isClean(const Kernel &kernel) {
  return llvm::all_of(kRuns, [&](std::pair<int64_t, int64_t> run) {
    return isFreeOfRaces(kernel, {{"full_tiles", run.first}, {"key_tiles", run.second}, {"row_begin", 0}});
  });
}

/// Small tiles, so that every thread can be followed.
std::vector<Shape> smallShapes() {
  std::vector<Shape> list;
  for (unsigned stages : {1u, 2u, 3u}) {
    list.push_back({"rows", Mma::MmaSync, Copy::CpAsync, 32, 32, 2, stages, 32});
    list.push_back({"staged", Mma::MmaSync, Copy::CpAsync, 32, 32, 2, stages, 32, 0, 1, OperandPlace::Registers});
    list.push_back({"keys", Mma::MmaSync, Copy::CpAsync, 16, 32, 2, stages, 32, 1, 2});
    list.push_back({"plain", Mma::MmaSync, Copy::LdSt, 32, 32, 2, stages, 32});
    list.push_back({"wmma", Mma::Wmma, Copy::CpAsync, 32, 32, 2, stages, 48});
    list.push_back({"wmma_over", Mma::Wmma, Copy::LdSt, 32, 32, 2, stages, 32});
    list.push_back({"scalar", Mma::Scalar, Copy::CpAsync, 8, 32, 2, stages, 32});
    list.push_back(
        {"scratch", Mma::Scalar, Copy::LdSt, 8, 32, 2, stages, 32, 0, 1, OperandPlace::Shared, Reduce::Shared});
  }
  return list;
}

TEST(Oracle, FindsNoRaceInWhatIsPlaced) {
  for (const Shape &shape : smallShapes())
    for (BarrierPolicy policy : {BarrierPolicy::Minimal, BarrierPolicy::Light, BarrierPolicy::Legacy}) {
      SCOPED_TRACE(std::string(shape.name) + " stages " + std::to_string(shape.stages));
      Lowering lowering(shape, policy);
      lowering.lower();
      PassContext context = lowering.context();
      placeBarriers(lowering.kernel, context);
      EXPECT_TRUE(isClean(lowering.kernel));
    }
}

TEST(Oracle, FindsARaceWithoutAnySiteOfMinimal) {
  for (const Shape &shape : smallShapes()) {
    Lowering lowering(shape);
    lowering.lower();
    PassContext context = lowering.context();
    placeBarriers(lowering.kernel, context);
    for (Op *site : lowering.sites()) {
      SCOPED_TRACE(std::string(shape.name) + " stages " + std::to_string(shape.stages) + " site " +
                   std::to_string(site->site));
      const auto attributes = site->attributes;
      if (site->kind == OpKind::CopyWait)
        site->attributes["pending"] = site->integer("pending") + 1;
      else // weaker than any hazard it could cover: a barrier of nobody
        site->attributes["scope"] = std::string(site->text("scope") == "cta" ? "warp" : "none");
      EXPECT_FALSE(isClean(lowering.kernel));
      site->attributes = attributes;
    }
  }
}

} // namespace

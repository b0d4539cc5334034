// fagen: the analysis against a simulation that shares nothing with it but the enumeration of accesses.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runs are much longer than the timelines of the analysis.

#include "Simulator.h"
#include "TestKernels.h"

#include "gtest/gtest.h"

#include <set>

using namespace fagen;
using namespace fagen::ir;
using namespace fagen::test;

namespace {

/// The lets' values for the first tile of rows of a problem.
std::map<std::string, int64_t> letsOf(const Kernel &kernel, int64_t seqQ, int64_t seqKv) {
  std::map<std::string, int64_t> values = {{"row_begin", 0}, {"seq_q", seqQ}, {"seq_kv", seqKv}};
  for (const Constant &constant : kernel.constants)
    values[constant.name] = constant.value;
  for (const Let &let : kernel.lets)
    values[let.name] = *let.value.evaluate([&](llvm::StringRef name) { return std::optional(values.at(name.str())); });
  return values;
}

/// Problems: no step, one, fewer and many more than any ring has slots, as many in the loop of whole tiles as can be,
/// and as many in the other.
bool isClean(const Kernel &kernel) {
  const int64_t rows = kernel.constant("kTileRows"), keys = kernel.constant("kTileKeys");
  std::set<std::pair<int64_t, int64_t>> seen;
  for (int64_t steps : {0, 1, 2, 3, 4, 7, 13})
    for (int64_t more : {int64_t(0), int64_t(1), keys - 2})
      for (int64_t seqQ : {int64_t(1), rows}) {
        const auto lets = letsOf(kernel, seqQ, seqQ + steps * keys + more);
        if (seen.insert({lets.at("full_tiles"), lets.at("key_tiles")}).second && !isFreeOfRaces(kernel, lets))
          return false;
      }
  return true;
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
        site->set(Attr::Pending, site->integer(Attr::Pending) + 1);
      else // weaker than any hazard it could cover: a barrier of nobody
        site->set(Attr::Scope, std::string(site->text(Attr::Scope) == "cta" ? "warp" : "none"));
      EXPECT_FALSE(isClean(lowering.kernel));
      site->attributes = attributes;
    }
  }
}

} // namespace

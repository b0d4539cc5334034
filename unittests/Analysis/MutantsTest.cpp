// fagen: judging mutants leaves the kernel as it was, and takes each site apart in every way.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TestKernels.h"

#include "fagen/Analysis/Mutants.h"

#include "gtest/gtest.h"

using namespace fagen;
using namespace fagen::ir;
using namespace fagen::test;

namespace {

std::string textOf(const Kernel &kernel) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(kernel, os);
  return text;
}

TEST(Mutants, NoSiteOfMinimalCanGoAndTheKernelStaysAsItWas) {
  for (const Shape &shape : shapes()) {
    SCOPED_TRACE(shape.name);
    Lowering lowering(shape);
    lowering.lower();
    PassContext context = lowering.context();
    placeBarriers(lowering.kernel, context);
    const std::string before = textOf(lowering.kernel);
    const std::vector<Mutant> mutants = judgeMutants(lowering.kernel);
    EXPECT_EQ(textOf(lowering.kernel), before);
    unsigned disabled = 0, moved = 0;
    for (const Mutant &mutant : mutants) {
      EXPECT_EQ(mutant.isNeeded, !mutant.why.empty());
      EXPECT_EQ(mutant.over != nullptr, mutant.action == Mutant::Action::Move);
      disabled += mutant.action == Mutant::Action::Disable;
      moved += mutant.action == Mutant::Action::Move;
      if (mutant.action != Mutant::Action::Move) {
        EXPECT_TRUE(mutant.isNeeded) << "site " << mutant.op->site;
      }
    }
    EXPECT_EQ(disabled, lowering.sites().size());
    EXPECT_GE(moved, disabled);
  }
}

TEST(Mutants, LegacyHasRedundantSites) {
  Lowering lowering({"scalar", Mma::Scalar, Copy::LdSt, 32, 64, 4, 1}, BarrierPolicy::Legacy);
  lowering.lower();
  PassContext context = lowering.context();
  placeBarriers(lowering.kernel, context);
  unsigned redundant = 0;
  for (const Mutant &mutant : judgeMutants(lowering.kernel))
    redundant += mutant.action == Mutant::Action::Disable && !mutant.isNeeded;
  EXPECT_EQ(redundant, 8u); // of six barriers in each of two loops two are needed
}

} // namespace

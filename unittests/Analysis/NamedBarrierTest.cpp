// fagen: the text of named barriers in a whole kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TestKernels.h"

#include "fagen/Emit/Kernel.h"

#include <gtest/gtest.h>

using namespace fagen;
using namespace fagen::test;

namespace {

/// A kernel of 2 x 2 warps with this barrier in place of each of the CTA.
std::string textWith(std::map<ir::Attr, ir::Attribute> attributes) {
  Lowering lowering({"grid", Mma::MmaSync, Copy::CpAsync, 32, 64, 4, 2, 64, 2, 2});
  lowering.lower();
  PassContext context = lowering.context();
  placeBarriers(lowering.kernel, context);
  attributes[ir::Attr::Scope] = std::string("named");
  attributes[ir::Attr::Id] = int64_t(3);
  attributes[ir::Attr::FirstWarp] = int64_t(0);
  attributes[ir::Attr::Warps] = int64_t(4);
  for (ir::Op *site : lowering.sites())
    if (site->kind == ir::OpKind::Barrier)
      site->attributes = attributes;
  return emitKernel(lowering.kernel).source;
}

TEST(NamedBarrier, AllItsWarpsShareOne) {
  const std::string text = textWith({});
  EXPECT_NE(text.find("ptx::named_barrier(3, 128);"), std::string::npos) << text;
  EXPECT_EQ(text.find("cta_barrier"), std::string::npos);
}

TEST(NamedBarrier, EachGroupHasItsOwn) {
  EXPECT_NE(textWith({{ir::Attr::Groups, int64_t(2)}}).find("ptx::named_barrier(3 + ptx::warp_index() / 2, 64);"),
            std::string::npos);
  EXPECT_NE(textWith({{ir::Attr::Groups, int64_t(2)}, {ir::Attr::Interleaved, int64_t(1)}})
                .find("ptx::named_barrier(3 + ptx::warp_index() % 2, 64);"),
            std::string::npos);
}

} // namespace

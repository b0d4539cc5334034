// fagen: the C++ wrapper.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "FakeManifest.h"
#include "TestForms.h"

#include <fagen/fagen.hpp>
#include <gtest/gtest.h>

using namespace fagen;
using namespace fagen::test;

namespace {

TEST(Wrapper, QueriesExplainsAndMoves) {
  TestTable table("k");
  table.add(makeRow("row"));
  Device first = Device::describe(89, 58);
  Device device = std::move(first);
  EXPECT_EQ(device.info().sm_count, 58u);
  Choice choice = device.query({table.get()}, makeProblem());
  EXPECT_STREQ(choice.info().variant, "row");
  EXPECT_EQ(choice.workspaceBytes(), 0u);
  EXPECT_EQ(choice.zeroBytes(), 0u);
  EXPECT_NE(device.explain({table.get()}, makeProblem()).find("picked   row"), std::string::npos);
}

TEST(Wrapper, OwnsALoadedTable) {
  FakeManifest set;
  ASSERT_EQ(set.load(), FAGEN_OK);
  Table first(set.directory), table = std::move(first);
  EXPECT_EQ(first.get(), nullptr);
  Device device = Device::describe(89, 58);
  EXPECT_STREQ(device.query({table.get()}, makeProblem()).info().variant, "fake");
  EXPECT_THROW(Table(set.directory / "none"), Error);
}

TEST(Wrapper, ArgsOfForms) {
  TestTable table("k");
  table.forms({makeForm("gemma2", "gemma2", kCapWindow), makeForm("doc", "doc", kTensors, 2)});
  table.add(formRow("gemma2", 0)).add(formRow("doc", 1));
  Device device = Device::describe(89, 58);
  fagen_problem problem = makeProblem();
  problem.mask = FAGEN_MASK_CAUSAL; // gives way
  Args numbers;
  numbers.number("window", 64).number("cap", 50.0f).putInto(problem, "gemma2");
  EXPECT_STREQ(device.query({table.get()}, problem).info().variant, "gemma2");
  static const int32_t onDevice = 3;
  Args tensors;
  tensors.number("n", &onDevice).tensor("a", nullptr, {0, 1}).tensor("sees", nullptr).tensor("half", nullptr);
  tensors.putInto(problem, "doc");
  EXPECT_STREQ(device.query({table.get()}, problem).info().variant, "doc");
  fagen_tensors run = fagen_tensors_init();
  tensors.putInto(run);
  EXPECT_EQ(run.arg_count, 4u);
  EXPECT_EQ(run.args[0].data, &onDevice);
  EXPECT_THROW(tensors.tensor("x", nullptr, {1, 1, 1, 1, 1}), std::invalid_argument);
}

TEST(Wrapper, FailuresAreExceptions) {
  TestTable table("k");
  table.add(makeRow("row"));
  Device device = Device::describe(89, 58);
  fagen_problem problem = makeProblem();
  problem.heads = -1;
  try {
    device.query({table.get()}, problem);
    FAIL() << "no exception";
  } catch (const Error &error) {
    EXPECT_EQ(error.status(), FAGEN_INVALID);
    EXPECT_STREQ(error.what(), "INVALID: heads is -1; it must not be negative");
  }
  EXPECT_THROW(device.makeCurrent(), Error);
}

} // namespace

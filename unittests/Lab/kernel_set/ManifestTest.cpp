// fagen: a kernel set's table, and what the laboratory reads next to it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../FakeSet.h"

#include <cstring>

using namespace fagen::lab;

namespace {

std::string errorOf(FakeSet &set) {
  try {
    set.load();
  } catch (const UserError &error) {
    return error.what();
  }
  return "";
}

void expectError(FakeSet &set, const std::string &part) {
  std::string error = errorOf(set);
  EXPECT_NE(error.find(part), std::string::npos) << error;
}

TEST(Manifest, becomesATable) {
  FakeSet fake;
  auto set = fake.load();
  ASSERT_EQ(set->rows().size(), 2u);
  const fagen_row &row = *set->rows()[0];
  EXPECT_STREQ(row.variant, "fake_f16_d16_causal");
  EXPECT_EQ(row.launches[0].threads, 128u);
  EXPECT_STREQ(row.code->source, "// fake_f16_d16_causal\n");
  EXPECT_EQ(set->facts(row).warps, 4);
  EXPECT_EQ(set->sourcePath(row), fake.directory / "sm_89/fake_f16_d16_causal.cu");
  EXPECT_STREQ(set->table()->schedules[1], "unaligned");
}

TEST(Manifest, opsOfALaunch) {
  FakeSet fake;
  fake.manifest["rows"][0]["launches"][0]["ops"] = {
      {{"line", 61}, {"op", "copy_wait@9"}, {"spec", "fake.fa:20"}, {"site", 3}}, {{"line", 64}, {"op", "mma@11"}}};
  auto set = fake.load();
  const std::vector<OpLine> &ops = set->ops(*set->rows()[0], 0);
  ASSERT_EQ(ops.size(), 2u);
  EXPECT_EQ(ops[0].line, 61);
  EXPECT_EQ(ops[0].op, "copy_wait@9");
  EXPECT_EQ(ops[0].spec, "fake.fa:20");
  EXPECT_EQ(ops[0].site, 3u);
  EXPECT_EQ(ops[1].spec, "");
  EXPECT_EQ(ops[1].site, 0u);
  EXPECT_TRUE(set->ops(*set->rows()[1], 0).empty());
  fake.manifest["rows"][0]["launches"][0]["ops"][1]["line"] = "last";
  expectError(fake, "rows[0].launches[0].ops[1].line is not a whole number");
}

TEST(Manifest, directoryOfDirectories) {
  FakeSet fake;
  fake.load();
  EXPECT_EQ(loadKernelSets({fake.directory.string()}).size(), 1u);
  EXPECT_EQ(loadKernelSets({(fake.directory / "sm_89" / "..").string()}).size(), 1u);
  EXPECT_THROW(loadKernelSets({(fake.directory / "sm_89").string()}), UserError);
  EXPECT_THROW(loadKernelSets({(fake.directory / "none").string()}), UserError);
}

TEST(Manifest, whatTheRuntimeRefuses) {
  FakeSet fake;
  fake.manifest["abi"] = 99;
  expectError(fake, "abi is 99; this library reads 1");
}

TEST(Manifest, gates) {
  FakeSet fake;
  fake.manifest["gates"] = {
      {{"name", "error"}, {"relation", "<="}, {"value", 0.5}, {"baseline", ""}, {"text", "error <= 0.5"}}};
  auto set = fake.load();
  ASSERT_EQ(set->gates().size(), 1u);
  EXPECT_TRUE(set->gates()[0].holds(0.5));
  fake.manifest["gates"][0]["relation"] = "=<";
  expectError(fake, "gates[0].relation is '=<'; known: <, <=, ==, !=, >=, >");
}

} // namespace

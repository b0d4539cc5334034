// fagen: manifests become tables; damaged ones are refused with the place of the damage.
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

TEST(Manifest, otherAbi) {
  FakeSet fake;
  fake.manifest["abi"] = 99;
  expectError(fake, "abi is 99; this fagen-run reads 1");
}

TEST(Manifest, unfinished) {
  FakeSet fake;
  fake.manifest["unfinished"] = true;
  expectError(fake, "the kernel set is unfinished");
}

TEST(Manifest, sourceThatNoFileCanBeCalled) {
  FakeSet fake;
  fake.manifest["rows"][0]["source"] = std::string(5000, 'x');
  expectError(fake, "which is not there");
}

TEST(Manifest, missingField) {
  FakeSet fake;
  fake.manifest["rows"][1]["launches"][0].erase("threads");
  expectError(fake, "rows[1].launches[0].threads is missing");
}

TEST(Manifest, wrongType) {
  FakeSet fake;
  fake.manifest["rows"][0]["tile_rows"] = "many";
  expectError(fake, "rows[0].tile_rows is not a whole number");
}

TEST(Manifest, numberOutOfRange) {
  FakeSet fake;
  fake.manifest["rows"][0]["alignment"] = -16;
  expectError(fake, "rows[0].alignment is -16");
}

TEST(Manifest, unknownWords) {
  FakeSet fake;
  fake.manifest["rows"][0]["dtype"] = "f8";
  expectError(fake, "rows[0].dtype is 'f8'; known: f16, bf16, e4m3");
}

TEST(Manifest, selectProgram) {
  FakeSet fake;
  nlohmann::json shortRows = {{"text", "seq_q <= 32"}, {"schedule", 0}, {"condition", {"seq_q", 32, "le"}}};
  fake.manifest["select"].insert(fake.manifest["select"].begin(), shortRows);
  auto set = fake.load();
  const fagen_select &line = set->table()->select[0];
  ASSERT_EQ(line.condition_size, 3u);
  EXPECT_EQ(line.condition[0].kind, uint32_t{FAGEN_OP_VARIABLE});
  EXPECT_EQ(line.condition[0].value, FAGEN_VAR_SEQ_Q);
  EXPECT_EQ(line.condition[1].value, 32);
  EXPECT_EQ(line.condition[2].kind, uint32_t{FAGEN_OP_LE});
  fake.manifest["select"][0]["condition"][2] = "less";
  expectError(fake, "select[0].condition[2] is 'less'");
}

TEST(Manifest, tooManyLaunches) {
  FakeSet fake;
  for (int i = 0; i < 4; ++i)
    fake.manifest["rows"][0]["launches"].push_back(fake.manifest["rows"][0]["launches"][0]);
  expectError(fake, "rows[0].launches has 5 entries; 1 to 4 are possible");
}

TEST(Manifest, missingSource) {
  FakeSet fake;
  std::filesystem::remove(fake.directory / "sm_89/fake_f16_d16_causal.cu");
  expectError(fake, "rows[0].source names");
}

TEST(Manifest, selectWithoutOtherwise) {
  FakeSet fake;
  fake.manifest["select"][0]["condition"] = {"seq_q", 32, "le"};
  expectError(fake, "select does not end in an otherwise line");
}

TEST(Manifest, notJson) {
  FakeSet fake;
  fake.load();
  std::ofstream(fake.directory / "manifest.json") << "{\"abi\": ";
  EXPECT_THROW(KernelSet::load(fake.directory), UserError);
}

} // namespace

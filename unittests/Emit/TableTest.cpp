// fagen: table.cpp, manifest.json and CMakeLists.txt of a plan made by hand.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "fagen/Emit/Table.h"
#include "fagen/Emit/CMakeFile.h"
#include "fagen/Emit/Manifest.h"

#include "TestPlan.h"

#include "llvm/Support/JSON.h"

#include <gtest/gtest.h>

using namespace fagen;
using namespace fagen::test;

namespace {

TEST(Table, RowsAreSortedByProblemThenDispatch) {
  TestPlan test;
  std::vector<std::string> names;
  for (unsigned index : tableOrder(test.plan))
    names.push_back(test.plan.variants[index].variant->name);
  EXPECT_EQ(names, (std::vector<std::string>{"tiny_prefill_f16_d64_none", "tiny_short_f16_d64_none",
                                             "tiny_unaligned_f16_d64_none", "tiny_prefill_f16_d64_none_legacy",
                                             "tiny_prefill_f16_d64_causal", "tiny_short_f16_d64_causal",
                                             "tiny_unaligned_f16_d64_causal"}));
}

TEST(Table, ConditionsAreNamedOperations) {
  TestPlan test;
  std::string text = emitTable(test.plan);
  EXPECT_NE(text.find("const fagen_op kCondition0[] = {\n"
                      "    {FAGEN_OP_VARIABLE, 0, FAGEN_VAR_SEQ_Q},\n"
                      "    {FAGEN_OP_CONSTANT, 0, 32},\n"
                      "    {FAGEN_OP_LE, 0, 0},\n"
                      "};\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("{.condition = nullptr, .condition_size = 0, .schedule = 0, .text = \"otherwise\"}"),
            std::string::npos);
}

TEST(Table, MapsStandWhereThereAreAny) {
  TestPlan test;
  EXPECT_EQ(emitTable(test.plan).find("map"), std::string::npos);
  EXPECT_EQ(emitManifest(test.plan).find("\"maps\""), std::string::npos);
  test.plan.variants[1].maps = {{'q', 64, 128, 128, 0}, {'k', 32, 176, 64, 3}};
  std::string text = emitTable(test.plan);
  EXPECT_NE(
      text.find("const fagen_map kMaps1[] = {\n"
                "    {.tensor = FAGEN_MAP_Q, .box_columns = 64, .box_rows = 128, .swizzle = 128, .box_panels = 0},\n"
                "    {.tensor = FAGEN_MAP_K, .box_columns = 32, .box_rows = 176, .swizzle = 64, .box_panels = 3},\n"
                "};\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("        .maps = kMaps1,\n        .map_count = 2,\n"), std::string::npos) << text;
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(emitManifest(test.plan));
  ASSERT_TRUE(bool(parsed));
  const llvm::json::Object &row = *(*parsed->getAsObject()->getArray("rows"))[1].getAsObject();
  const llvm::json::Object &map = *(*row.getArray("maps"))[1].getAsObject();
  EXPECT_EQ(map.getString("tensor"), "k");
  EXPECT_EQ((*map.getArray("box"))[1].getAsInteger(), 176);
  EXPECT_EQ((*map.getArray("box"))[2].getAsInteger(), 3);
  EXPECT_EQ(map.getInteger("swizzle"), 64);
}

TEST(Table, SameSpecSameBytes) {
  TestPlan a, b;
  EXPECT_EQ(emitTable(a.plan), emitTable(b.plan));
  EXPECT_EQ(emitTableHeader(a.plan), emitTableHeader(b.plan));
  EXPECT_EQ(emitManifest(a.plan), emitManifest(b.plan));
  EXPECT_EQ(emitCMakeFile(a.plan), emitCMakeFile(b.plan));
}

TEST(Manifest, HasEveryRowInTableOrderWithItsPlan) {
  TestPlan test;
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(emitManifest(test.plan));
  ASSERT_TRUE(bool(parsed));
  const llvm::json::Object &manifest = *parsed->getAsObject();
  EXPECT_EQ(manifest.getInteger("abi"), 1);
  EXPECT_EQ(manifest.getString("spec"), "tiny.fa");
  const llvm::json::Array &rows = *manifest.getArray("rows");
  ASSERT_EQ(rows.size(), 7u);
  const llvm::json::Object &row = *rows[3].getAsObject();
  EXPECT_EQ(row.getString("variant"), "tiny_prefill_f16_d64_none_legacy");
  EXPECT_EQ(row.getString("dispatch"), "by_name");
  EXPECT_EQ(row.getInteger("order"), 6);
  EXPECT_EQ(row.getInteger("first_sm"), 80);
  EXPECT_EQ((*row.getArray("launches"))[0].getAsObject()->getInteger("shared_bytes"), 49152);
  EXPECT_EQ(row.getObject("plan")->getObject("estimates")->getInteger("registers"), 96);
  EXPECT_EQ(row.getObject("plan")->getObject("schedule")->getString("mma"), "scalar");
  const llvm::json::Array &condition = *(*manifest.getArray("select"))[0].getAsObject()->getArray("condition");
  ASSERT_EQ(condition.size(), 3u);
  EXPECT_EQ(condition[0].getAsString(), "seq_q");
  EXPECT_EQ(condition[1].getAsInteger(), 32);
  EXPECT_EQ(condition[2].getAsString(), "le");
}

TEST(Manifest, ListsItsFilesAndReadsThemBack) {
  TestPlan test;
  std::vector<std::string> files = filesOf(test.plan);
  EXPECT_EQ(files.size(), 11u);
  EXPECT_EQ(filesOfManifest(emitManifest(test.plan)), files);
  EXPECT_NE(std::find(files.begin(), files.end(), "sm_89/tiny_short_f16_d64_causal.cu"), files.end());
}

TEST(Manifest, UnfinishedListsWhatIsThereBeforeAndAfter) {
  TestPlan test;
  std::vector<std::string> files = filesOf(test.plan);
  EXPECT_EQ(filesOfManifest(emitUnfinishedManifest(test.plan, "")), files);
  const std::string text = emitUnfinishedManifest(test.plan, R"({"files": ["a.cu", "table.h", "../b"]})");
  files.insert(files.begin(), "a.cu");
  std::sort(files.begin(), files.end());
  EXPECT_EQ(filesOfManifest(text), files);
  EXPECT_NE(text.find("\"unfinished\": true"), std::string::npos) << text;
  EXPECT_EQ(filesOfManifest(emitUnfinishedManifest(test.plan, text)), files); // interrupted twice
}

TEST(Manifest, ReadingBackTrustsNothing) {
  EXPECT_TRUE(filesOfManifest("").empty());
  EXPECT_TRUE(filesOfManifest("{\"files\": 1}").empty());
  EXPECT_EQ(filesOfManifest(R"({"files": ["a.cu", "/etc/passwd", "../b", "sm_89/../../c", 7, "", "sm_89/d.cu"]})"),
            (std::vector<std::string>{"a.cu", "sm_89/d.cu"}));
}

TEST(Manifest, FilesMayStandAnywhereAndHaveAnyName) {
  const std::vector<std::string> files = {"a].cu", "b.cu"};
  EXPECT_EQ(filesOfManifest(R"({"files": ["a].cu", "b.cu"], "rows": [{"files": ["c.cu"]}]})"), files);
  EXPECT_EQ(filesOfManifest(R"({"rows": [1, {"files": ["c.cu"]}], "files": ["a].cu", "b.cu"]})"), files);
  EXPECT_EQ(filesOfManifest(R"({"rows": [[]]})"), std::vector<std::string>());
}

TEST(CMakeFile, NamesTheKernel) {
  TestPlan test;
  std::string text = emitCMakeFile(test.plan);
  EXPECT_NE(text.find("fagen_add_kernels(tiny DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})\n"), std::string::npos) << text;
}

} // namespace

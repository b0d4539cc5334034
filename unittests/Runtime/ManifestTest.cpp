// fagen: manifests become tables; damaged and hostile ones are refused with the place of the damage.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "FakeManifest.h"
#include "TestTable.h"
#include "compile/cache.h"

#include <random>

using namespace fagen::test;

namespace {

const std::string kRemedy = "; fagen SPEC -o DIR writes the kernel set anew";

TEST(Manifest, BecomesATable) {
  FakeManifest set;
  ASSERT_EQ(set.load(), FAGEN_OK) << fagen_last_error();
  const fagen_table &table = *set.table;
  EXPECT_EQ(fagen_table_check(&table), FAGEN_OK);
  EXPECT_STREQ(table.kernel, "k");
  EXPECT_STREQ(table.schedules[1], "other");
  ASSERT_EQ(table.row_count, 2u);
  EXPECT_STREQ(table.rows[0].variant, "fake");
  EXPECT_STREQ(table.rows[0].code->source, "// fake\n");
  EXPECT_STREQ(table.rows[0].code->source_name, "sm_89/fake.cu");
  EXPECT_EQ(table.rows[0].launches[0].reserved, 2u);
  const fagen_select &line = table.select[0];
  ASSERT_EQ(line.condition_size, 3u);
  EXPECT_EQ(line.condition[0].value, FAGEN_VAR_SEQ_Q);
  EXPECT_EQ(line.condition[1].value, 32);
  EXPECT_EQ(line.condition[2].kind, uint32_t{FAGEN_OP_LE});
  TestDevice device(89);
  EXPECT_EQ(pick({&table}, makeProblem(), device), "fake");
}

/// A set whose first row has machine code.
struct MachineCode : testing::Test {
  FakeManifest set;
  const std::string file = "sm_89/fake.sm_89.cubin";

  void SetUp() override {
    std::ofstream(set.directory / file, std::ios::binary) << std::string("ELF\0code", 8);
    set.change("\"source\": \"sm_89/fake.cu\"", "\"source\": \"sm_89/fake.cu\", \"binaries\": [{\"file\": \"" + file +
                                                    "\", \"sm\": 89, \"exact\": false, \"made_from\": \"" +
                                                    fagen::hashParts({"// fake\n"}) + "\"}]");
  }
};

TEST_F(MachineCode, ComesFromTheFileBesideTheSource) {
  ASSERT_EQ(set.load(), FAGEN_OK) << fagen_last_error();
  const fagen_code &code = *set.table->rows[0].code;
  ASSERT_EQ(code.binary_count, 1u);
  EXPECT_EQ(code.binaries[0].kind, uint32_t{FAGEN_BINARY_CUBIN});
  EXPECT_EQ(code.binaries[0].sm, 89u);
  EXPECT_EQ(code.binaries[0].exact, 0u);
  EXPECT_EQ(std::string(static_cast<const char *>(code.binaries[0].data), code.binaries[0].size),
            std::string("ELF\0code", 8));
  EXPECT_STREQ(code.source, "// fake\n");
  EXPECT_EQ(set.table->rows[1].code->binary_count, 0u);
}

TEST_F(MachineCode, OfAnotherTextIsNotUsed) {
  std::ofstream(set.directory / "sm_89/fake.cu") << "// edited\n";
  ASSERT_EQ(set.load(), FAGEN_OK) << fagen_last_error();
  EXPECT_EQ(set.table->rows[0].code->binary_count, 0u);
  EXPECT_STREQ(set.table->rows[0].code->source, "// edited\n");
}

TEST_F(MachineCode, IsInTheKernelSet) {
  set.change(file, "../fake.cubin");
  EXPECT_EQ(set.error(),
            "manifest.json:13: rows[0].binaries[0].file is '../fake.cubin', which leads out of the kernel set" +
                kRemedy);
  set.change("../fake.cubin", "sm_89/gone.cubin");
  EXPECT_EQ(set.error(), "manifest.json:13: rows[0].binaries[0].file names 'sm_89/gone.cubin', which is not in " +
                             set.directory.string() + kRemedy);
}

TEST(Manifest, DependentLaunchesAreMarked) {
  FakeManifest set;
  ASSERT_EQ(set.change("\"threads\": ", "\"dependent\": true, \"threads\": ").load(), FAGEN_OK) << fagen_last_error();
  EXPECT_EQ(set.table->rows[0].dependent_launches, 1u);
  EXPECT_EQ(set.table->rows[1].dependent_launches, 0u);
}

TEST(Manifest, ScratchPartsAreTheLast) {
  FakeManifest set;
  const std::string scratch = "\"scratch\": true, \"alignment\": 16}]";
  ASSERT_EQ(set.change("\"alignment\": 16}]", scratch).load(), FAGEN_OK) << fagen_last_error();
  EXPECT_EQ(set.table->rows[0].scratch_parts, 1u);
  EXPECT_EQ(set.table->rows[1].scratch_parts, 0u);
  set.change(scratch, "\"scratch\": true, \"alignment\": 16}, {\"name\": \"c\", \"bytes\": [4], \"alignment\": 4}]");
  EXPECT_EQ(set.error(),
            "manifest.json:15: rows[0].workspace[1] must be zero, but stands after parts that need not be" + kRemedy);
}

TEST(Manifest, ByItsOwnPath) {
  FakeManifest set;
  ASSERT_EQ(set.load(), FAGEN_OK);
  const fagen_table *table = nullptr;
  EXPECT_EQ(fagen_table_load((set.directory / "manifest.json").c_str(), &table), FAGEN_OK) << fagen_last_error();
  EXPECT_STREQ(table->rows[1].code->source, "// plain\n");
  fagen_table_release(table);
}

TEST(Manifest, WhatIsNotThere) {
  const fagen_table *table = nullptr;
  EXPECT_EQ(fagen_table_load(nullptr, &table), FAGEN_INVALID);
  EXPECT_EQ(fagen_table_load("/", nullptr), FAGEN_INVALID);
  EXPECT_EQ(fagen_table_load("/proc", &table), FAGEN_INVALID);
  EXPECT_STREQ(fagen_last_error(), "/proc has no manifest.json; fagen SPEC -o DIR writes one");
  EXPECT_EQ(fagen_table_load("/no/such", &table), FAGEN_INVALID);
  EXPECT_STREQ(fagen_last_error(), "cannot read /no/such: No such file or directory");
  EXPECT_EQ(fagen_table_load("/dev/zero", &table), FAGEN_INVALID);
  EXPECT_STREQ(fagen_last_error(), "cannot read /dev/zero: not a file");
  EXPECT_EQ(table, nullptr);
  fagen_table_release(nullptr);
}

TEST(Manifest, AnotherAbi) {
  FakeManifest set;
  EXPECT_EQ(set.change("\"abi\": 1", "\"abi\": 99").load(), FAGEN_ABI_MISMATCH);
  EXPECT_EQ(set.error(), "manifest.json: abi is 99; this library reads 1: take the fagen that it came with");
}

TEST(Manifest, Unfinished) {
  FakeManifest set;
  const std::string error = set.change("\"abi\"", "\"unfinished\": true, \"abi\"").error();
  EXPECT_EQ(error.rfind("manifest.json:1: the kernel set is unfinished", 0), 0u) << error;
}

struct Damage {
  const char *from, *to, *error;
};

TEST(Manifest, DamageIsNamed) {
  const Damage damages[] = {
      {"\"threads\": 128, ", "", "14: rows[0].launches[0].threads is missing"},
      {"\"tile_rows\": 64", "\"tile_rows\": \"many\"", "13: rows[0].tile_rows is not a whole number"},
      {"\"tile_rows\": 64", "\"tile_rows\": 6.5", "13: rows[0].tile_rows is not a whole number"},
      {"\"alignment\": 16", "\"alignment\": -16", "13: rows[0].alignment is -16, not a number from 0 to 4294967295"},
      {"\"f16\"", "\"f8\"", "11: rows[0].dtype is 'f8'; known: f16, bf16, e4m3"},
      {"\"le\"", "\"less\"", "7: select[0].condition[2] is 'less', neither an operation nor a variable"},
      {"\"condition\": []", "\"condition\": 0", "8: select[1].condition is not a list"},
      {"\"kernel\": \"k\"", "\"kernel\": 1", "3: kernel is not text"},
      {"\"sm_89/fake.cu\"", "\"sm_89/none.cu\"", "13: rows[0].source names "},
      {"\"sm_89/fake.cu\"", "\"../fake.cu\"", "13: rows[0].source is '../fake.cu', which leads out of the kernel set"},
      {"\"sm_89/fake.cu\"", "\"/etc/passwd\"", "13: rows[0].source is '/etc/passwd', which leads out of the"},
      {"\"launches\": [", "\"maps\": [{\"box\": [1]}], \"launches\": [", "14: rows[0].maps[0].box has 1 numbers"},
      {"\"order\": 0", "\"order\": 16384", "1: table k, row 0 (fake): a number of its key is larger"},
      {"\"alignment\": 16}", "\"alignment\": 12}", "1: table k, row 0 (fake): a workspace alignment is not a power"},
      {"\"condition\": []", "\"condition\": [1]", "1: table k: select does not end in an otherwise line"},
      {"\"splits\": 2", "\"splits\": 1000", "1: table k, row 0 (fake): a launch has no symbol, an unknown grid"},
  };
  for (const Damage &damage : damages) {
    FakeManifest set;
    const std::string error = set.change(damage.from, damage.to).error();
    EXPECT_EQ(error.rfind("manifest.json:" + std::string(damage.error), 0), 0u) << error;
    EXPECT_NE(error.find(kRemedy), std::string::npos) << error;
  }
}

/// The set with a form, whose number the first row has.
void addForm(FakeManifest &set) {
  set.change("\"kernel\"",
             "\"forms\": [{\"name\": \"f\", \"text\": \"f(w = 3)\", \"hash\": \"8000000000000001\",\n"
             "\"bytes\": 40, \"params\": [\n"
             "{\"name\": \"w\", \"element\": \"i32\", \"low\": 1, \"high\": 9, \"bound\": 3},\n"
             "{\"name\": \"splits\", \"element\": \"f32\", \"offset\": 0, \"low\": 0.5, \"mask\": true},\n"
             "{\"name\": \"t\", \"element\": \"i32\", \"offset\": 16, \"ascending\": true,\n"
             "\"extents\": [[\"heads\"], [\"splits\", 1, \"add\"]]}],\n"
             "\"mask\": \"@k @p <=\"}],\n\"kernel\"");
  set.change("\"mask\": \"none\"", "\"mask\": \"f(w = 3)\", \"form\": 0");
}

TEST(Manifest, FormsAreRead) {
  FakeManifest set;
  addForm(set);
  ASSERT_EQ(set.error(), "");
  ASSERT_EQ(set.table->form_count, 1u);
  const fagen_form &form = set.table->forms[0];
  EXPECT_STREQ(form.name, "f");
  EXPECT_STREQ(form.text, "f(w = 3)");
  EXPECT_EQ(form.hash, 0x8000000000000001u);
  EXPECT_EQ(form.bytes, 40u);
  ASSERT_EQ(form.param_count, 3u);
  EXPECT_EQ(form.params[0].offset, FAGEN_PARAM_BOUND);
  EXPECT_EQ(form.params[0].bound, 3);
  EXPECT_EQ(form.params[0].high, 9);
  EXPECT_EQ(form.params[1].low, 0.5);
  EXPECT_EQ(form.params[1].high, std::numeric_limits<double>::infinity());
  EXPECT_EQ(form.params[1].flags, uint32_t(FAGEN_PARAM_IN_MASK));
  EXPECT_EQ(form.params[2].flags, uint32_t(FAGEN_PARAM_ASCENDING));
  ASSERT_EQ(form.params[2].rank, 2u);
  EXPECT_EQ(form.params[2].extents[0].ops[0].value, FAGEN_VAR_HEADS);
  EXPECT_EQ(form.params[2].extents[1].ops[0].value, FAGEN_VAR_FORM_0 + 1); // the param, not the run's splits
  EXPECT_EQ(set.table->rows[1].mask, FAGEN_MASK_FORM_0);
  EXPECT_STREQ(set.table->rows[1].variant, "fake");
}

TEST(Manifest, SharedTilesNameParamsBehindADollar) {
  FakeManifest set;
  addForm(set);
  set.change("\"form\": 0", "\"form\": 0, \"shared_tiles\": [\"$w\", \"row\", \"splits\", \"max\", \"floor_div\"]");
  ASSERT_EQ(set.error(), "");
  const fagen_row &row = set.table->rows[1];
  ASSERT_EQ(row.shared_tiles_size, 5u);
  EXPECT_EQ(row.shared_tiles[0].value, FAGEN_VAR_FORM_0);
  EXPECT_EQ(row.shared_tiles[1].value, FAGEN_VAR_ROW);
  EXPECT_EQ(row.shared_tiles[2].value, FAGEN_VAR_SPLITS); // not the param of that name
  EXPECT_EQ(row.shared_tiles[3].kind, FAGEN_OP_MAX);
  EXPECT_EQ(row.shared_tiles[4].kind, FAGEN_OP_FLOOR_DIV);
}

TEST(Manifest, DamageOfFormsIsNamed) {
  const Damage damages[] = {
      {"\"f32\"", "\"f8\"", "6: forms[0].params[1].element is 'f8'; known: bit, u8, i32, f16, bf16, f32"},
      {"8000000000000001", "80", "3: forms[0].hash is '80', not 16 hexadecimal digits"},
      {"8000000000000001", "800000000000000x", "3: forms[0].hash is '800000000000000x', not 16 hexadecimal digits"},
      {"[\"heads\"]", "[\"head\"]",
       "8: forms[0].params[2].extents[0][0] is 'head', neither an operation nor a variable"},
      {"[[\"heads\"]", "[[1], [1], [1], [\"heads\"]", "8: forms[0].params[2].extents has 5 extents; at most 4"},
      {"\"offset\": 16", "\"offset\": 12", "1: table k, form 0 (f(w = 3)): a param is not at a multiple of 8"},
      {"\"form\": 0", "\"form\": 1", "1: table k, row 1 (fake): its mask is neither none nor causal nor a form"},
      {"\"form\": 0", "\"form\": 0, \"shared_tiles\": [\"w\"]",
       "18: rows[0].shared_tiles[0] is 'w', neither an operation nor a variable"},
      {"\"form\": 0", "\"form\": 0, \"shared_tiles\": [\"add\"]", "1: table k, row 1 (fake): lacks an operand"},
      {"\"form\": 0", "\"form\": 61", "18: rows[0].form is 61, not a number from 0 to 60"},
  };
  for (const Damage &damage : damages) {
    FakeManifest set;
    addForm(set);
    const std::string error = set.change(damage.from, damage.to).error();
    EXPECT_EQ(error.rfind("manifest.json:" + std::string(damage.error), 0), 0u) << error;
  }
}

TEST(Manifest, WithoutRows) {
  FakeManifest set;
  set.text.erase(set.text.find("\"rows\": [") + 9);
  set.text += "]}";
  EXPECT_EQ(set.error(), "manifest.json:9: rows is empty" + kRemedy);
}

TEST(Manifest, TooManyLaunches) {
  FakeManifest set;
  const size_t begin = set.text.find("{\"symbol\""), end = set.text.find('}', begin) + 1;
  const std::string launch = set.text.substr(begin, end - begin);
  set.text.insert(end, "," + launch + "," + launch + "," + launch + "," + launch);
  EXPECT_EQ(set.error(), "manifest.json:14: rows[0].launches has 5 entries; 1 to 4 are possible" + kRemedy);
}

TEST(Manifest, NotJson) {
  FakeManifest set;
  set.text = "{\n\"abi\": ";
  EXPECT_EQ(set.error(), "manifest.json:2: is not JSON: it has nothing more where a value belongs");
}

/// Puts a piece of the text in the place of another, or a word of the format.
void mutate(std::string &text, std::mt19937 &random) {
  static const char *const words[] = {"-1",
                                      "0",
                                      "4294967295",
                                      "9223372036854775807",
                                      "1e300",
                                      "\"\"",
                                      "null",
                                      "[]",
                                      "{}",
                                      "\"splits\"",
                                      "true",
                                      "\"tiles\"",
                                      "64",
                                      "\"rows\"",
                                      "\"sms\"",
                                      "\"div\"",
                                      "\"persistent\"",
                                      ","};
  auto below = [&](size_t limit) { return std::uniform_int_distribution<size_t>(0, limit)(random); };
  /// A whole value mostly, so that the text stays JSON.
  const size_t at = below(text.size() - 1), begin = text.find_first_of(":,[", at);
  const size_t end = begin == std::string::npos ? begin : text.find_first_of(",]}", begin + 1);
  if (below(9) == 0)
    text[at] = char(below(255));
  else if (below(20) == 0)
    text.resize(at + 1);
  else if (end != std::string::npos)
    text.replace(begin + 1, end - begin - 1, words[below(std::size(words) - 1)]);
}

TEST(Manifest, SurvivesAnyText) {
  FakeManifest set;
  const std::string whole = set.text;
  std::mt19937 random(19);
  TestDevice device(89);
  unsigned loaded = 0;
  for (unsigned i = 0; i < 800; ++i) {
    set.text = whole;
    for (unsigned n = 0; n <= i % 3; ++n)
      mutate(set.text, random);
    const std::string error = set.error();
    ASSERT_EQ(error.empty(), set.table != nullptr);
    if (error.empty()) {
      ++loaded;
      for (int64_t rows : {0, 1, 33, 100000}) {
        fagen_problem problem = makeProblem();
        problem.seq_q = rows;
        pick({set.table}, problem, device);
      }
    } else {
      ASSERT_EQ(error.rfind("manifest.json:", 0), 0u) << error << "\n" << set.text;
    }
  }
  EXPECT_GT(loaded, 15u); // that many changes say something else that a table may say
}

} // namespace

// fagen: the emulator against a recording of another device.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/conformance/recording.h"
#include "ModelRunner.h"

#include <filesystem>
#include <fstream>

using namespace fagen::lab;

namespace {

class RecordingTest : public testing::Test {
protected:
  std::string path =
      (std::filesystem::temp_directory_path() / ("fagen-recording-" + std::to_string(getpid()))).string();
  std::unique_ptr<KernelRunner> emulator = makeEmulatorRunner();

  void TearDown() override { std::filesystem::remove(path); }
  void write(const Json &json) const { std::ofstream(path) << json.dump(); }

  /// A result as a GPU would give it: the emulator's under another name.
  Json recorded(const std::string &pattern) {
    Json json = conformanceJson(runOn(*emulator, pattern, 1));
    json["devices"][0] = "test GPU";
    for (Json &entry : json["functions"])
      entry["results"][0]["device"] = "test GPU";
    return {{"conformance", json}};
  }

  std::vector<std::string> disagreements(const Json &json, const std::string &pattern) {
    write(json);
    const Recording recording = Recording::load(path);
    EXPECT_EQ(recording.device(), "test GPU");
    EXPECT_EQ(recording.rounds(), 1u);
    return recording.disagreements(runOn(*emulator, pattern, 1));
  }
};

TEST_F(RecordingTest, sameResultsAgree) {
  EXPECT_EQ(disagreements(recorded("fma"), "fma"), std::vector<std::string>{});
  EXPECT_EQ(disagreements(recorded("exp2"), "exp2"), std::vector<std::string>{});
  EXPECT_EQ(disagreements(recorded("mma_m16n8k16_f32_f16"), "mma_m16n8k16_f32_f16"), std::vector<std::string>{});
}

TEST_F(RecordingTest, otherBitsOfAnExactFunction) {
  Json json = recorded("fma");
  json["conformance"]["functions"][0]["results"][0]["hash"] = "0123456789abcdef";
  EXPECT_EQ(disagreements(json, "fma"), std::vector<std::string>{"fma: the bits differ from those of test GPU"});
}

TEST_F(RecordingTest, otherBitsOfAModel) {
  Json json = recorded("mma_m16n8k16_f32_f16");
  json["conformance"]["functions"][0]["results"][0]["hash"] = "0123456789abcdef";
  const std::vector<std::string> found = disagreements(json, "mma_m16n8k16_f32_f16");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].find("no longer gives the bits of test GPU"), std::string::npos) << found[0];
}

TEST_F(RecordingTest, noModelWasFound) {
  Json json = recorded("mma_m16n8k16_f32_f16");
  json["conformance"]["models"][0]["best"][0]["different"] = 3;
  EXPECT_EQ(disagreements(json, "mma_m16n8k16_f32_f16"),
            std::vector<std::string>{"mma_m16n8k16_f32_f16: no model gives the bits of test GPU"});
}

TEST_F(RecordingTest, wrongOrBeyondTheBound) {
  Json json = recorded("exp2");
  json["conformance"]["functions"][0]["results"][0]["max_of_bound"] = 1.5;
  EXPECT_EQ(disagreements(json, "exp2"), std::vector<std::string>{"exp2: test GPU was beyond the bound"});
  json["conformance"]["functions"][0]["results"][0]["wrong"] = 2;
  EXPECT_EQ(disagreements(json, "exp2"), std::vector<std::string>{"exp2: 2 words of test GPU are wrong"});
}

TEST_F(RecordingTest, functionsThatWereNotRecorded) {
  EXPECT_EQ(disagreements(recorded("fma"), "mul"),
            std::vector<std::string>{"mul: not in the recording of test GPU; record again"});
}

TEST_F(RecordingTest, filesThatAreNone) {
  EXPECT_THROW(Recording::load(path), UserError);
  std::ofstream(path) << "{";
  EXPECT_THROW(Recording::load(path), UserError);
  write({{"conformance", conformanceJson(runOn(*emulator, "fma", 1))}});
  EXPECT_THROW(Recording::load(path), UserError); // only the emulator's
}

} // namespace

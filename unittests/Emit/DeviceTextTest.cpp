// fagen: the parts of the device library that a text reaches.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "DeviceText.h"

#include <gtest/gtest.h>

using namespace fagen;

namespace {

bool has(const std::string &text, const char *part) { return text.find(part) != std::string::npos; }

TEST(DeviceText, TakesWhatIsUsedAndWhatThatUses) {
  const std::string text = pickDeviceText({"prepare(make_divisor(3)); // floor_div"}, {"fagen/device/params.h"}, {});
  EXPECT_TRUE(has(text, "struct Divisor {"));
  EXPECT_TRUE(has(text, "__host__ __device__ constexpr Divisor make_divisor(int divisor)"));
  EXPECT_FALSE(has(text, "floor_div")); // in a comment only
  EXPECT_FALSE(has(text, "struct AttentionParams"));
  EXPECT_FALSE(has(text, "#include"));
}

TEST(DeviceText, HeadersStandBehindThoseThatTheyInclude) {
  const std::string text = pickDeviceText({"MappedAttentionParams p;"}, {"fagen/device/params.h"}, {});
  const size_t map = text.find("struct alignas(64) TensorMap"), params = text.find("struct AttentionParams");
  ASSERT_TRUE(map != std::string::npos && params != std::string::npos);
  EXPECT_LT(map, params);
  EXPECT_LT(params, text.find("struct MappedAttentionParams"));
}

TEST(DeviceText, ProductsOfOtherColumnsAreLeftOut) {
  const std::string text = pickDeviceText({"ptx::wgmma_f32_f16(d);"}, {"fagen/device/ptx/wgmma.h"}, {64, 128});
  EXPECT_TRUE(has(text, ".m64n64k16."));
  EXPECT_TRUE(has(text, ".m64n128k16."));
  EXPECT_FALSE(has(text, ".m64n72k16."));
  EXPECT_FALSE(has(text, "f32.bf16.bf16"));
}

TEST(DeviceText, FunctionsOfAnyTypeAreFound) {
  // A reference to an array, a template as the type, an enumeration without a scope's words.
  const std::string text = pickDeviceText({"elements(a); mbarrier_init(b);"}, {"fagen/device/ops/wgmma.h"}, {});
  EXPECT_TRUE(has(text, "elements("));
}

TEST(DeviceText, ConstexprFunctionsAreForBothSides) {
  EXPECT_EQ(markConstexpr("constexpr int f(int a) { return a; }"),
            "__host__ __device__ constexpr int f(int a) { return a; }");
  EXPECT_EQ(markConstexpr("struct S { static constexpr int at(); };"),
            "struct S { static __host__ __device__ constexpr int at(); };");
  for (const char *kept : {"constexpr int k = f(1);", "if constexpr (kIs) {}", "__device__ constexpr int f() {}",
                           "// constexpr int f()\n", "constexpr int k[] = {g(1)};"})
    EXPECT_EQ(markConstexpr(kept), kept);
}

} // namespace

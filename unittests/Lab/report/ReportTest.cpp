// fagen: what the HTML report is made of: scales, ticks, markup, CSV, landscapes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/device/machine.h"
#include "lab/report/bar_chart.h"
#include "lab/report/csv.h"
#include "lab/report/field.h"
#include "lab/report/landscape_chart.h"
#include "lab/report/progress_chart.h"
#include "lab/report/roofline_chart.h"
#include "lab/report/stack_chart.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <limits>

using namespace fagen::lab;
using namespace fagen::lab::page;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

namespace {

TEST(Machine, TheDriversVersionAlone) {
  EXPECT_EQ(driverVersionOf(
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (builder@host)"),
            "580.159.04");
  EXPECT_EQ(driverVersionOf("something else"), "something else");
}

TEST(Scale, linearMapsEndsAndMiddle) {
  const Scale scale = Scale::linear(10, 20, 100, 200);
  EXPECT_DOUBLE_EQ(scale.at(10), 100);
  EXPECT_DOUBLE_EQ(scale.at(15), 150);
  EXPECT_DOUBLE_EQ(scale.at(20), 200);
}

TEST(Scale, upwardsAxisRunsTheOtherWay) {
  const Scale scale = Scale::linear(0, 10, 300, 20);
  EXPECT_DOUBLE_EQ(scale.at(0), 300);
  EXPECT_DOUBLE_EQ(scale.at(10), 20);
}

TEST(Scale, logarithmicHasEqualStepsForEqualRatios) {
  const Scale scale = Scale::logarithmic(1, 1000, 0, 300);
  EXPECT_NEAR(scale.at(10), 100, 1e-9);
  EXPECT_NEAR(scale.at(100), 200, 1e-9);
}

TEST(Scale, equalEndsAreSpread) {
  EXPECT_TRUE(std::isfinite(Scale::linear(7, 7, 0, 10).at(7)));
  EXPECT_TRUE(std::isfinite(Scale::linear(0, 0, 0, 10).at(0)));
  EXPECT_TRUE(std::isfinite(Scale::logarithmic(7, 7, 0, 10).at(7)));
}

TEST(Scale, refusesWhatHasNoScale) {
  EXPECT_THROW(Scale::logarithmic(0, 10, 0, 1), UserError);
  EXPECT_THROW(Scale::linear(0, std::numeric_limits<double>::infinity(), 0, 1), UserError);
  EXPECT_THROW(Scale::linear(std::nan(""), 1, 0, 1), UserError);
}

TEST(Scale, linearTicksAreRoundAndWithin) {
  EXPECT_THAT(Scale::linear(0, 10, 0, 1).ticks(5), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(Scale::linear(0, 1, 0, 1).ticks(2), ElementsAre(0, 0.5, 1));
  EXPECT_THAT(Scale::linear(3, 17, 0, 1).ticks(3), ElementsAre(5, 10, 15));
  EXPECT_THAT(Scale::linear(-4, 4, 0, 1).ticks(4), ElementsAre(-4, -2, 0, 2, 4));
}

TEST(Scale, logTicksArePowersOfTen) {
  EXPECT_THAT(Scale::logarithmic(1, 1e4, 0, 1).ticks(5), ElementsAre(1, 10, 100, 1000, 10000));
  EXPECT_THAT(Scale::logarithmic(1, 100, 0, 1).ticks(6), ElementsAre(1, 2, 5, 10, 20, 50, 100));
  EXPECT_THAT(Scale::logarithmic(1, 1e8, 0, 1).ticks(4), ElementsAre(1, 100, 1e4, 1e6, 1e8));
  EXPECT_THAT(Scale::logarithmic(20, 1200, 0, 1).ticks(6), ElementsAre(20, 50, 100, 200, 500, 1000));
}

TEST(Scale, narrowLogTicksAreLinear) {
  EXPECT_THAT(Scale::logarithmic(8, 12, 0, 1).ticks(4), ElementsAre(8, 9, 10, 11, 12));
}

TEST(Scale, roundedEndsAreTicks) {
  const Scale scale = Scale::linear(0, 41.2, 0, 100).rounded(5);
  EXPECT_DOUBLE_EQ(scale.low(), 0);
  EXPECT_DOUBLE_EQ(scale.high(), 50);
  EXPECT_DOUBLE_EQ(Scale::logarithmic(3, 40, 0, 1).rounded(5).high(), 100);
}

TEST(Scale, roundSteps) {
  EXPECT_DOUBLE_EQ(roundStep(1), 1);
  EXPECT_DOUBLE_EQ(roundStep(1.1), 2);
  EXPECT_DOUBLE_EQ(roundStep(0.03), 0.05);
  EXPECT_DOUBLE_EQ(roundStep(600), 1000);
}

TEST(Scale, numbersForPeople) {
  EXPECT_EQ(numberText(0), "0");
  EXPECT_EQ(numberText(-0.0), "0");
  EXPECT_EQ(numberText(41), "41");
  EXPECT_EQ(numberText(41.256), "41.26");
  EXPECT_EQ(numberText(0.5), "0.5");
  EXPECT_EQ(numberText(10000), "10000");
  EXPECT_EQ(numberText(1.8e9), "1800000000");
  EXPECT_EQ(numberText(2e13), "2e+13");
  EXPECT_EQ(numberText(0.00012), "0.00012");
  EXPECT_EQ(numberText(std::nan("")), "-");
}

TEST(Markup, escapesMarkupControlsAndBrokenBytes) {
  EXPECT_EQ(escaped("<a & \"b\">"), "&lt;a &amp; &quot;b&quot;&gt;");
  EXPECT_EQ(escaped(std::string("a\0b\x1b\n", 5)), "a b  ");
  EXPECT_EQ(escaped("\xc3\xa9\xe2\x82\xac"), "\xc3\xa9\xe2\x82\xac");
  EXPECT_EQ(escaped("\xff"), "\xef\xbf\xbd");
  EXPECT_EQ(escaped("\xe2\x82"), "\xef\xbf\xbd\xef\xbf\xbd");         // cut off
  EXPECT_EQ(escaped("\xed\xa0\x80").find("\xed"), std::string::npos); // a surrogate
  EXPECT_EQ(escaped("\xc0\x80").find("\xc0"), std::string::npos);     // overlong
  EXPECT_EQ(escaped("\xef\xbf\xbe").find("\xbe"), std::string::npos); // not in XML
}

TEST(Markup, elements) {
  EXPECT_EQ(element("p", {{"class", "a<b"}}, "x"), "<p class=\"a&lt;b\">x</p>");
  EXPECT_EQ(element("br", {}), "<br/>");
  EXPECT_EQ(textElement("td", {}, "1 < 2"), "<td>1 &lt; 2</td>");
}

TEST(Markup, pixelsAreFinite) {
  EXPECT_EQ(pixels(3), "3");
  EXPECT_EQ(pixels(3.14), "3.1");
  EXPECT_EQ(pixels(-0.01), "0");
  EXPECT_THROW(pixels(std::nan("")), UserError);
}

class CsvFile : public testing::Test {
protected:
  Csv read(const std::string &text) {
    std::ofstream(path) << text;
    return Csv::read(path, "write it");
  }
  std::string errorOf(const std::string &text) {
    try {
      read(text);
    } catch (const UserError &error) {
      return error.what();
    }
    return "";
  }
  ~CsvFile() override { std::filesystem::remove(path); }
  std::string path = std::filesystem::path(testing::TempDir()) / "report_test.csv";
};

TEST_F(CsvFile, columnsByNameInAnyOrder) {
  const Csv csv = read("b,a\r\n1,\"x, \"\"y\"\"\n z\"\r\n\r\n,2\r\n");
  ASSERT_EQ(csv.size(), 2u);
  EXPECT_EQ(csv.text(0, "a"), "x, \"y\"\n z");
  EXPECT_EQ(csv.number(0, "b"), 1);
  EXPECT_EQ(csv.number(1, "b"), std::nullopt);
  EXPECT_TRUE(csv.hasColumn("a"));
  EXPECT_FALSE(csv.hasColumn("c"));
}

TEST_F(CsvFile, saysWhatIsWrong) {
  EXPECT_THAT(errorOf(""), HasSubstr(":1: there is no head line; write it"));
  EXPECT_THAT(errorOf("a,b\n1,2\n3\n"), HasSubstr(":3: it has 1 cells, and the head 2"));
  EXPECT_THAT(errorOf("a\n\"x\n"), HasSubstr(":2: a quote does not end"));
  const Csv csv = read("a\n1e\n");
  EXPECT_THROW(csv.number(0, "a"), UserError);
  EXPECT_THROW(csv.text(0, "z"), UserError);
}

TEST(Charts, bestSoFarTakesOnlyWhatCounts) {
  const auto best = bestSoFar({{"a", "refused", {}, false},
                               {"b", "ok", 9.0, true},
                               {"c", "raced", 3.0, false},
                               {"d", "ok", 10.0, true},
                               {"e", "ok", 8.0, true}});
  EXPECT_THAT(best, ElementsAre(std::nullopt, 9.0, 9.0, 9.0, 8.0));
}

TEST(Charts, axesByInfluence) {
  const std::vector<Found> found = {{{{"tile", "16"}, {"warps", "1"}, {"copy", "x"}}, 10},
                                    {{{"tile", "16"}, {"warps", "2"}, {"copy", "x"}}, 11},
                                    {{{"tile", "32"}, {"warps", "1"}, {"copy", "x"}}, 20},
                                    {{{"tile", "32"}, {"warps", "2"}, {"copy", "x"}}, 22}};
  EXPECT_THAT(axesByInfluence(found), ElementsAre("tile", "warps"));
}

TEST(Charts, naturalOrder) {
  EXPECT_TRUE(naturalLess("2", "16"));
  EXPECT_TRUE(naturalLess("64x32", "128x32"));
  EXPECT_TRUE(naturalLess("64x32", "64x128"));
  EXPECT_TRUE(naturalLess("xor", "xor2"));
  EXPECT_FALSE(naturalLess("16", "2"));
  EXPECT_FALSE(naturalLess("a", "a"));
}

TEST(Charts, landscapeHasTheLeastOfEachCell) {
  const auto chart = landscapeChart("id", "title", {{{{"a", "1"}}, 10}, {{{"a", "1"}}, 9.5}, {{{"a", "2"}}, 12}});
  ASSERT_TRUE(chart);
  EXPECT_THAT(chart->body, HasSubstr(">9.5<"));
  EXPECT_THAT(chart->body, HasSubstr(">of 2<"));
  EXPECT_THAT(chart->body, Not(HasSubstr(">10<")));
  EXPECT_FALSE(landscapeChart("id", "title", {{{{"a", "1"}}, 10}}));
  EXPECT_FALSE(landscapeChart("id", "title", {}));
}

TEST(Charts, escapeLabels) {
  EXPECT_THAT(barChart("id", "<t>", "us", {{"<b>", 1, Interval{0.9, 1.1}, true}}).body, Not(HasSubstr("<b>")));
  EXPECT_THAT(stackChart("id", "<t>", {"a&b"}, {{"<b>", {{"a&b", 1}}}}).body, HasSubstr("A a&amp;b"));
}

TEST(Charts, withoutDataHaveNoBrokenNumber) {
  EXPECT_NO_THROW(barChart("id", "title", "us", {}));
  EXPECT_NO_THROW(stackChart("id", "title", {}, {}));
  EXPECT_NO_THROW(progressChart("id", "title", {}, {}));
  EXPECT_NO_THROW(progressChart("id", "title", {{"a", "hung", {}, false}}, {}));
  EXPECT_NO_THROW(rooflineChart("id", "title", {900, 4800}, {}));
}

TEST(Charts, rooflinePutsMeasuredBelowFloor) {
  const Chart chart = rooflineChart("id", "title", {1000, 4000}, {{"k", 1e9, 1e6, 2e6, 1, 10}});
  EXPECT_THAT(chart.body, HasSubstr("k: floor 1 us, 1000 TFLOP/s"));
  EXPECT_THAT(chart.body, HasSubstr("k: 10 us, 100 TFLOP/s at 500 FLOP/byte"));
}

} // namespace

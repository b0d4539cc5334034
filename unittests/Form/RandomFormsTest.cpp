// fagen: random forms: the parser and the laboratory's interpreter against trees that evaluate themselves.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// FAGEN_RANDOM_FORMS says how many forms there are; FAGEN_RANDOM_SEED, where they begin.

#include "../Environment.h"
#include "FormOfText.h"
#include "RandomForm.h"
#include "fagen/Form/Print.h"

#include <cmath>
#include <cstdio>
#include <gtest/gtest.h>

using namespace fagen;

namespace {

bool isSame(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// What a program gives at random elements is what the tree gives.
void compare(const lab::FormProgram &program, const RandomValue &score, const RandomValue &mask, RandomForms &random) {
  constexpr lab::Shape kShape = {2, 4, 2, 5, 9, 0, 0};
  const lab::FormArguments arguments = random.arguments();
  lab::BoundForm bound = program.bind(kShape, arguments);
  for (unsigned i = 0; i != 8; ++i) {
    const lab::FormElement element = {double(random.draw(-64, 64)) / 8, random.draw(0, 1), random.draw(0, 3),
                                      random.draw(0, 4), random.draw(0, 8)};
    const RandomPlace place{kShape, arguments, element};
    const double wanted = score.evaluate(place), given = bound.score(element);
    EXPECT_TRUE(isSame(wanted, given)) << score.text << " is " << wanted << ", not " << given;
    EXPECT_EQ(bound.mask(element), mask.evaluate(place) != 0) << mask.text;
  }
}

TEST(RandomForms, MeanWhatTheirTreesMean) {
  const uint64_t count = fromEnvironment("FAGEN_RANDOM_FORMS", 2000), first = fromEnvironment("FAGEN_RANDOM_SEED", 1);
  for (uint64_t seed = first; seed != first + count && !::testing::Test::HasFailure(); ++seed) {
    RandomForms random(seed);
    const RandomValue score = random.real(random.draw(0, 5)), mask = random.truth(random.draw(0, 5));
    const std::string text =
        "form f { " + RandomForms::params() + "score = " + score.text + "; mask = " + mask.text + "; }";
    std::string report;
    const std::optional<form::Form> form = formOfText(text, report);
    ASSERT_TRUE(form.has_value()) << "seed " << seed << ": " << report;
    compare(lab::FormProgram(textsOf(*form)), score, mask, random);
    std::string printed, again, none;
    llvm::raw_string_ostream os(printed), osAgain(again);
    printForm(*form, os);
    const std::optional<form::Form> second = formOfText(printed, none);
    ASSERT_TRUE(second.has_value()) << "seed " << seed << ": " << printed << none;
    printForm(*second, osAgain);
    EXPECT_EQ(printed, again) << "seed " << seed;
  }
  std::printf("%llu random forms mean what their trees mean\n", static_cast<unsigned long long>(count));
}

} // namespace

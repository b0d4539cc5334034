// fagen: tests of which ops do the same to an execution: a test for each field that tells two apart.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../IR/TestProgram.h"

#include "execution/ExecutionPlan.h"

#include "gtest/gtest.h"

using namespace fagen;

namespace {

/// Whether two ops of a role of eight warps do the same; of a vote its last op is asked.
bool doTheSame(llvm::StringRef first, llvm::StringRef second) {
  const std::string text =
      ("program @p {\n  kernel @k target sm_90a backend wgmma threads 256 phase laid_out {\n"
       "    const kWarps = 8\n    const kThreads = 256\n    const kRowWarps = 8\n"
       "    const kKeyWarps = 1\n    const kVectorBytes = 16\n"
       "    grid clusters 2\n"
       "    global %gk : f16[rows x 64]\n    shared %k : f16[64 x 64]\n    shared %v : f16[64 x 64]\n"
       "    shared %x : f32[128 x 64]\n    shared %bar : mbarrier[1 x 1]\n"
       "    fragment %s : f32[16 x 64]\n    fragment %t : f32[16 x 1]\n"
       "    role all warps 0 to 8 {\n      " +
       first + "\n      " + second + "\n    }\n  }\n}\n")
          .str();
  ir::ReadResult result;
  ir::read(text, result);
  EXPECT_TRUE(result.program) << result.errors << text;
  if (!result.program)
    return false;
  const ir::Kernel &kernel = *result.program->kernels.front();
  const ir::Role *role = &kernel.roles.front();
  AccessTable table(kernel, role);
  const Points points(*role);
  ExecutionPlan plan(kernel, role, points, table);
  std::vector<unsigned> doings;
  for (const std::unique_ptr<ir::Op> &op : role->body.ops) {
    const ir::Op &last = op->body.ops.empty() ? *op : *op->body.ops.back();
    doings.push_back(plan.op(0, points.before(&last)).doing);
  }
  EXPECT_EQ(doings.size(), 2u);
  return doings.front() == doings.back();
}

struct Pair {
  const char *what, *op, *other;
};

class Doing : public testing::TestWithParam<Pair> {};

TEST_P(Doing, IsToldApart) {
  EXPECT_TRUE(doTheSame(GetParam().op, GetParam().op));
  EXPECT_TRUE(doTheSame(GetParam().other, GetParam().other));
  EXPECT_FALSE(doTheSame(GetParam().op, GetParam().other));
}

const Pair kPairs[] = {
    {"HowItSynchronises", R"(fence {kind = "async_proxy"})", R"(fence {kind = "mbarrier_init"})"},
    {"InAllCtas", R"(arrive %bar {by = "warp"})", R"(arrive %bar {by = "warp", cluster = 1})"},
    {"Interleaved", R"(barrier {scope = "named", id = 1, first_warp = 0, warps = 8, groups = 2})",
     R"(barrier {scope = "named", id = 1, first_warp = 0, warps = 8, groups = 2, interleaved = 1})"},
    {"Pending", "mma_wait {pending = 0}", "mma_wait {pending = 1}"},
    {"Id", "pass_turn {id = 1, groups = 2}", "pass_turn {id = 3, groups = 2}"},
    {"Groups", R"(barrier {scope = "named", id = 1, first_warp = 0, warps = 8, groups = 2})",
     R"(barrier {scope = "named", id = 1, first_warp = 0, warps = 8, groups = 4})"},
    {"FirstWarp", R"(barrier {scope = "named", id = 1, first_warp = 0, warps = 4})",
     R"(barrier {scope = "named", id = 1, first_warp = 4, warps = 4})"},
    {"Warps", R"(barrier {scope = "named", id = 1, first_warp = 0, warps = 8})",
     R"(barrier {scope = "named", id = 1, first_warp = 0, warps = 4})"},
    {"Arrivals", "mbarrier_init %bar {arrivals = 1}", "mbarrier_init %bar {arrivals = 2}"},
    {"Lanes", R"(bulk_wait {pending = 0, by = "group"})", R"(bulk_wait {pending = 0, by = "thread"})"},
    {"Cell", R"(mma_issue %s, %k, %k {form = "abt", accumulate = 0})",
     R"(mma_issue %s, %k, %v {form = "abt", accumulate = 0})"},
    {"ReadsToo", R"(mma %x, %k, %k {form = "abt", accumulate = 0})",
     R"(mma %x, %k, %k {form = "abt", accumulate = 1})"},
    {"FenceOfAVote", "vote %t {test = %t <= 1.0} {\n mma %s, %k, %k {form = \"abt\", accumulate = 0}\n}",
     "vote %t {test = %t <= 1.0, fenced = 1} {\n mma %s, %k, %k {form = \"abt\", accumulate = 0}\n}"},
};

INSTANTIATE_TEST_SUITE_P(Field, Doing, testing::ValuesIn(kPairs), [](const auto &info) { return info.param.what; });

/// Copies that CTAs share are known by the op, since two of them to one position may bring different rows.
TEST(DoingOfCopies, AreApartWhereCtasShareThem) {
  const char *alone = R"(copy_issue %k, %gk, %bar {kind = "bulk", row = 0, limit = seq_kv})";
  const char *shared = R"(copy_issue %k, %gk, %bar {kind = "bulk", row = 0, limit = seq_kv, cluster = 1})";
  EXPECT_TRUE(doTheSame(alone, alone));
  EXPECT_FALSE(doTheSame(shared, shared));
}

} // namespace

// fagen: tests of the builder, the accessors and the walk.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TestProgram.h"

#include "fagen/IR/OpClasses.h"
#include "fagen/IR/Queries.h"
#include "fagen/IR/Verifier.h"

#include "gtest/gtest.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

std::string printedOps(const Block &block) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (const std::unique_ptr<Op> &op : block.ops)
    print(*op, os);
  return text;
}

struct BuilderTest : testing::Test {
  BuilderTest() {
    Buffer buffer;
    buffer.name = "s";
    buffer.space = Space::Fragment;
    s = &kernel.addBuffer(buffer);
    kernel.roles.push_back({"all", 0, 4, {}});
  }
  Block &body() { return kernel.roles.front().body; }

  Kernel kernel;
  Buffer *s = nullptr;
};

TEST_F(BuilderTest, AppendsAndNests) {
  Builder builder(body());
  builder.add(makeMap({.dst = {s, {}}, .value = real(0)}));
  builder.loop("j", constant(0), variable("n"), [&] {
    builder.branch(lessThan(variable("j"), constant(3)), [&] { builder.add(makeCopyCommit({})); });
    builder.add(makeCopyWait({.pending = 1}));
  });
  builder.add(makeCopyCommit({}));
  EXPECT_EQ(printedOps(body()), "map %s {value = 0.0}\n"
                                "loop j = 0 to n {\n"
                                "  if j < 3 {\n"
                                "    copy_commit\n"
                                "  }\n"
                                "  copy_wait {pending = 1}\n"
                                "}\n"
                                "copy_commit\n");
}

TEST_F(BuilderTest, LocationSticksAndNotesStay) {
  Builder builder(body());
  Location location;
  location.file = "a.fa";
  location.line = 7;
  builder.setLocation(location);
  builder.add(makeCopyCommit({.note = "why"}));
  builder.add(makeCopyCommit({}));
  EXPECT_EQ(printedOps(body()), "copy_commit loc(\"a.fa\":7) note(\"why\")\ncopy_commit loc(\"a.fa\":7)\n");
}

TEST_F(BuilderTest, AbsentOperandsHaveNoBuffer) {
  Builder builder(body());
  const Op &op =
      builder.add(makeReduce({.dst = {s, {}}, .src = {s, {}}, .op = Reduction::Max, .reach = ReduceReach::Row}));
  EXPECT_EQ(op.operands.size(), 3u);
  EXPECT_EQ(ReduceOp(op).with().buffer, nullptr);
  EXPECT_EQ(ReduceOp(op).dst().buffer, s);
  EXPECT_EQ(op.text(Attr::Op), "max");
}

TEST_F(BuilderTest, WalksOuterOpsFirst) {
  Builder builder(body());
  builder.loop("j", constant(0), constant(2), [&] { builder.add(makeCopyCommit({})); });
  builder.add(makeCopyWait({.pending = 0}));
  std::vector<OpKind> kinds;
  walk(body(), [&](const Op &op) { kinds.push_back(op.kind); });
  EXPECT_EQ(kinds, (std::vector<OpKind>{OpKind::Loop, OpKind::CopyCommit, OpKind::CopyWait}));
}

TEST(Kernel, FindsConstantsAndBuffers) {
  Kernel kernel;
  kernel.addConstant("kTileRows", 64, "tile");
  EXPECT_TRUE(kernel.hasConstant("kTileRows"));
  EXPECT_FALSE(kernel.hasConstant("kTile"));
  EXPECT_EQ(kernel.constant("kTileRows"), 64);
  EXPECT_EQ(kernel.buffer("k"), nullptr);
}

TEST(Buffer, CountsBytes) {
  Buffer buffer;
  buffer.type = ElementType::BF16;
  buffer.rows = 64;
  buffer.columns = 128;
  buffer.isRing = true;
  buffer.stages = 3;
  EXPECT_EQ(buffer.stageBytes(), 64u * 128 * 2);
  EXPECT_EQ(buffer.bytes(), 3u * 64 * 128 * 2);
}

TEST(Count, IsANumberAndHowItIsWritten) {
  Kernel kernel;
  const Count slots = kernel.addConstant("kSlots", 3, "stages");
  EXPECT_EQ(slots, 3u);
  EXPECT_EQ(slots.str(), "kSlots");
  EXPECT_EQ(countOf(kernel, constant(16) * slots.expr()), 48u);
  EXPECT_EQ(Count(48).str(), "48");
  EXPECT_EQ(Count(48, constant(48)).str(), "48");
}

TEST(Count, MustBeWhatIsWritten) {
  Kernel kernel;
  kernel.backend = "mma_sync";
  kernel.symbol = "k";
  kernel.threads = 32;
  kernel.roles.push_back({"all", 0, 1, {}});
  Buffer buffer;
  buffer.name = "k";
  buffer.rows = kernel.addConstant("kRows", 64, "tile");
  buffer.columns = 64;
  kernel.addBuffer(buffer);
  auto defectsOf = [&] {
    std::string text;
    verify(kernel, [&](const Location &, const llvm::Twine &message) { text += message.str() + "\n"; });
    return text;
  };
  EXPECT_EQ(defectsOf(), "");
  kernel.constants.front().value = 32;
  EXPECT_EQ(defectsOf(), "%k: rows are written as 'kRows', which is not 64\n");
}

TEST(Ops, TableIsConsistent) {
  for (unsigned i = 0; i != kOpKinds; ++i) {
    const OpInfo &info = opInfo(OpKind(i));
    EXPECT_EQ(unsigned(info.kind), i);
    EXPECT_EQ(opKindByName(info.name), info.kind);
  }
  EXPECT_EQ(opKindByName("nothing"), std::nullopt);
}

} // namespace

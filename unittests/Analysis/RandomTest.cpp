// fagen: random bodies: what place-barriers makes of them is free of races, and has nothing to spare.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Simulator.h"
#include "TestKernels.h"

#include "fagen/Analysis/TilesRead.h"
#include "fagen/Analysis/Timeline.h"

#include "gtest/gtest.h"

#include <random>

using namespace fagen;
using namespace fagen::ir;
using namespace fagen::test;

namespace {

constexpr unsigned kSeeds = 200;

/// A body of copies, products and softmax steps of the scalar backend, in loops that may run no step.
class RandomKernel {
public:
  explicit RandomKernel(unsigned seed) : random(seed), lowering({"random", Mma::Scalar, Copy::LdSt, 4, 32, 2, 1, 32}) {
    PassContext context = lowering.context();
    resolveOptions(lowering.kernel, context);
    addBuffers();
    kernel().lets = {{"a", variable("seq_q"), ""}, {"b", variable("seq_kv"), ""}};
    kernel().roles.push_back({"all", 0, 2, {}});
    Builder builder(kernel().roles.front().body);
    addOps(builder, 0);
    resolveWaits(kernel());
    allocate();
  }

  Lowering &get() { return lowering; }
  Kernel &kernel() { return lowering.kernel; }

private:
  unsigned below(unsigned limit) { return random() % limit; }

  Buffer *add(llvm::StringRef name, Space space, ElementType type, unsigned rows, unsigned columns, bool isRing) {
    Buffer buffer;
    buffer.name = name.str();
    buffer.space = space;
    buffer.type = type;
    buffer.rows = rows;
    buffer.columns = columns;
    buffer.isRing = isRing;
    buffer.stages = isRing ? 1 + below(3) : 1;
    return &kernel().addBuffer(std::move(buffer));
  }

  void addBuffers() {
    global = add("g", Space::Global, ElementType::F16, 0, 32, false);
    k = add("k", Space::Shared, ElementType::F16, 32, 32, true);
    v = add("v", Space::Shared, ElementType::F16, 32, 32, true);
    q = add("q", Space::Shared, ElementType::F16, 4, 32, false);
    s = add("s", Space::Shared, ElementType::F32, 4, 32, false);
    if (below(3) == 0)
      q->overlays = k;
    fragment = add("f", Space::Fragment, ElementType::F32, 2, 32, false);
  }

  /// As allocate-shared does; that pass also checks the sum against a spec.
  void allocate() {
    uint64_t end = 0;
    for (Buffer *buffer : {k, v, q, s}) {
      buffer->offset = buffer->overlays ? 0 : end;
      end += buffer->bytes();
    }
    kernel().sharedBytes = end;
    kernel().phase = Phase::Allocated;
  }

  Expr position() { return depth == 0 ? constant(below(3)) : variable("j") + constant(below(3)); }
  Operand any(Buffer *buffer) { return {buffer, buffer->isRing ? position() : Expr()}; }

  void addOps(Builder &builder, unsigned level) {
    for (unsigned i = 0, count = 2 + below(5); i < count; ++i)
      addOp(builder, level);
  }

  void addOp(Builder &builder, unsigned level) {
    switch (below(level == 0 ? 9 : 7)) {
    case 0:
    case 1:
      addCopy(builder);
      return;
    case 2:
      builder.add(
          makeMma({.acc = {s, {}}, .a = {q, {}}, .b = any(k), .form = MmaForm::Abt, .accumulate = below(2) != 0}));
      return;
    case 3:
      builder.add(makeMma({.acc = {fragment, {}}, .a = {s, {}}, .b = any(v), .form = MmaForm::Ab, .accumulate = true}));
      return;
    case 4:
      builder.add(makeMap({.dst = {s, {}}, .x = {fragment, {}}, .value = elementOf(*s) - elementOf(*fragment)}));
      return;
    case 5:
      builder.add(
          makeReduce({.dst = {fragment, {}}, .src = {s, {}}, .op = Reduction::Sum, .reach = ReduceReach::Thread}));
      return;
    case 6:
      builder.add(makeCopyWait({.pending = int64_t(below(2)) - 1}));
      return;
    default:
      depth = 1;
      builder.loop("j", constant(0), variable(below(2) ? "a" : "b"), [&] { addOps(builder, level + 1); });
      depth = 0;
    }
  }

  void addCopy(Builder &builder) {
    Buffer *targets[] = {k, v, q};
    const bool isAsync = below(2);
    CopyIssueArgs copy{.dst = {},
                       .src = {global, {}},
                       .kind = isAsync ? CopyKind::CpAsync : CopyKind::LdSt,
                       .row = constant(0),
                       .limit = variable("seq_kv")};
    if (depth != 0 && below(2))
      copy.when = lessThan(variable("j") + constant(1), variable("a"));
    copy.dst = any(targets[below(3)]);
    builder.add(makeCopyIssue(std::move(copy)));
    if (!isAsync)
      return;
    builder.add(makeCopyCommit({}));
    if (below(4) != 0)
      builder.add(makeCopyWait({.pending = int64_t(below(3)) - 1}));
  }

  std::mt19937 random;
  Lowering lowering;
  unsigned depth = 0;
  Buffer *global = nullptr, *k = nullptr, *v = nullptr, *q = nullptr, *s = nullptr, *fragment = nullptr;
};

bool isRaceFree(const Kernel &kernel) {
  for (int64_t a : {0, 1, 2, 5, 19})
    for (int64_t b : {0, 1, 2, 3, 23})
      if (!isFreeOfRaces(kernel, {{"a", a}, {"b", b}}))
        return false;
  return true;
}

/// Whether its barriers suffice. Random bodies read any tile: what is said of that, which comes last, does not count.
bool isVerified(Kernel &kernel) {
  llvm::SourceMgr sources;
  std::string said;
  llvm::raw_string_ostream stream(said);
  Diagnostics diags(sources, stream);
  PassContext context{diags};
  verifyBarriers(kernel, context);
  const bool isVerified = kernel.phase == Phase::Verified;
  kernel.phase = Phase::Placed;
  const std::vector<WrongTile> wrong = isVerified ? std::vector<WrongTile>() : findWrongTiles(kernel).wrong;
  return isVerified || (!wrong.empty() && llvm::all_of(wrong, [&](const WrongTile &tile) {
           return llvm::StringRef(said).contains(tile.message);
         }));
}

/// Whether some barrier can be left out of a block without an objection.
bool hasSpare(Kernel &kernel, Block &block) {
  for (size_t i = 0; i < block.ops.size(); ++i) {
    if (hasSpare(kernel, block.ops[i]->body))
      return true;
    if (block.ops[i]->kind != OpKind::Barrier)
      continue;
    std::unique_ptr<Op> barrier = std::move(block.ops[i]);
    block.ops.erase(block.ops.begin() + i);
    const bool spare = isVerified(kernel);
    block.ops.insert(block.ops.begin() + i, std::move(barrier));
    if (spare)
      return true;
  }
  return false;
}

TEST(Random, PlacedBodiesAreFreeOfRacesAndHaveNothingToSpare) {
  unsigned placed = 0, barriers = 0;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomKernel random(seed);
    PassContext context = random.get().context();
    placeBarriers(random.kernel(), context);
    if (random.get().diags.hasErrors()) // a copy without its wait
      continue;
    ++placed;
    barriers += random.get().sites().size();
    ASSERT_TRUE(isVerified(random.kernel()));
    ASSERT_TRUE(isRaceFree(random.kernel()));
    ASSERT_FALSE(hasSpare(random.kernel(), random.get().body()));
  }
  EXPECT_GT(placed, kSeeds / 4);
  EXPECT_GT(barriers, kSeeds);
}

TEST(Random, WhatIsRefusedRaces) {
  unsigned refused = 0;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomKernel random(seed);
    PassContext context = random.get().context();
    placeBarriers(random.kernel(), context);
    if (!random.get().diags.hasErrors())
      continue;
    ++refused;
    EXPECT_FALSE(isRaceFree(random.kernel()));
  }
  EXPECT_GT(refused, kSeeds / 10);
}

} // namespace

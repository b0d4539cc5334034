// fagen: query, and run up to the driver, allocate nothing.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TestTable.h"

#include <atomic>
#include <cstdlib>
#include <gtest/gtest.h>
#include <new>

namespace {
std::atomic<int> allocations{0};
} // namespace

// Every allocation of this program by new; the runtime has no other way. All forms that it takes: a sanitizer has its
// own.
void *operator new(size_t size, const std::nothrow_t &) noexcept {
  ++allocations;
  return malloc(size ? size : 1);
}
void *operator new(size_t size) {
  if (void *memory = operator new(size, std::nothrow))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { free(memory); }
void operator delete(void *memory, size_t) noexcept { free(memory); }

using namespace fagen::test;

namespace {

TEST(Allocation, QueryAndRunDoWithout) {
  TestTable table("k", {"prefill", "short"});
  fagen_row row = makeRow("prefill");
  table.add(row);
  row.variant = "short";
  row.schedule = 1;
  table.add(row);
  table.select("seq_q <= 32", 1, seqQAtMost(32)).select("otherwise", 0);
  const fagen_table *tables[] = {table.get()};
  TestDevice device(89);
  fagen_problem problem = makeProblem(), unsupported = makeProblem();
  unsupported.head_dim_qk = 72;
  fagen_choice choice = fagen_choice_init();
  fagen_tensors tensors = fagen_tensors_init();
  tensors.q = tensors.k = tensors.v = tensors.o = reinterpret_cast<void *>(0x1000);
  char text[256];

  const int before = allocations;
  ASSERT_GT(before, 0); // the counter works
  fagen_status picked = fagen_query(tables, 1, &problem, device, &choice);
  fagen_status unpicked = fagen_query(tables, 1, &unsupported, device, &choice);
  fagen_status run = fagen_run(&choice, &tensors, nullptr, 0, nullptr);
  fagen_explain(tables, 1, &problem, device, text, sizeof(text));
  const int after = allocations;
  EXPECT_EQ(before, after);
  EXPECT_EQ(picked, FAGEN_OK);
  EXPECT_EQ(unpicked, FAGEN_UNSUPPORTED);
  EXPECT_EQ(run, FAGEN_NOT_PREPARED);
}

} // namespace

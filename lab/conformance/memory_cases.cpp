// fagen: conformance of loads, stores, asynchronous copies and addresses.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cases.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

namespace fagen::lab {

namespace {

constexpr size_t kStages = 4;

/// A random order of 0 to count - 1.
std::vector<uint32_t> shuffled(Words &random, uint32_t count) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  for (uint32_t i = count; i > 1; --i)
    std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

/// Each thread has `stride` words: a slot that no other thread of its CTA has, a slot to read, and data.
void fillSlots(Words &random, WordList &in, size_t stride) {
  for (unsigned cta = 0; cta < kGrid; ++cta) {
    const std::vector<uint32_t> slots = shuffled(random, kThreads);
    for (unsigned t = 0; t < kThreads; ++t) {
      uint32_t *words = &in[(cta * kThreads + t) * stride];
      words[0] = slots[t];
      words[1] = random.below(kThreads);
      for (size_t i = 2; i < stride; ++i)
        words[i] = random.oneIn(8) ? random.anyFloat() : random.next();
    }
  }
}

ConformanceCase slotCase(std::string name, const char *function, std::string symbol, size_t stride, size_t results) {
  ConformanceCase c;
  c.name = std::move(name);
  c.functions = {function};
  c.symbol = std::move(symbol);
  c.grid = kGrid;
  c.threads = kThreads;
  c.sharedBytes = 8192;
  c.inWords = kAll * stride;
  c.outWords = kAll * results;
  c.operands = stride;
  c.results = results;
  c.inputs = "random words and slots";
  c.fill = [stride](Words &random, unsigned, WordList &in) { fillSlots(random, in, stride); };
  return c;
}

/// 16 bytes of each thread go to its slot; then each thread takes those of the slot it reads.
void expectExchange(const WordList &in, WordList &out) {
  for (unsigned first = 0; first < kAll; first += kThreads) {
    const uint32_t *owner[kThreads] = {};
    for (unsigned t = 0; t < kThreads; ++t)
      owner[in[(first + t) * 8]] = &in[(first + t) * 8];
    for (unsigned t = 0; t < kThreads; ++t)
      std::copy_n(owner[in[(first + t) * 8 + 1]] + 4, 4, &out[(first + t) * 4]);
  }
}

/// Each thread's slot gets the data of the thread that it reads.
void expectGlobalCopy(const WordList &in, WordList &out) {
  for (unsigned first = 0; first < kAll; first += kThreads)
    for (unsigned t = 0; t < kThreads; ++t) {
      const uint32_t *words = &in[(first + t) * 8];
      std::copy_n(&in[(first + words[1]) * 8 + 4], 4, &out[(first + words[0]) * 4]);
    }
}

/// Each thread's word begins as its word 4, and counts up to word 5: three times what it was, and what it is then.
void expectIncrements(const WordList &in, WordList &out) {
  for (unsigned t = 0; t < kAll; ++t) {
    uint32_t word = in[t * 8 + 4];
    for (unsigned i = 0; i < 4; ++i) {
      out[t * 4 + i] = word;
      word = word >= in[t * 8 + 5] ? 0 : word + 1;
    }
  }
}

/// Four stages: bit 4 * stage + word of words[2] says whether the copy of that word is valid; 8 and 16 bytes have one
/// bit, that of their first word.
void expectAsyncCopy(size_t bytes, const WordList &in, WordList &out) {
  for (unsigned first = 0; first < kAll; first += kThreads) {
    const uint32_t *owner[kThreads] = {};
    for (unsigned t = 0; t < kThreads; ++t)
      owner[in[(first + t) * 20]] = &in[(first + t) * 20];
    for (unsigned t = 0; t < kThreads; ++t) {
      const uint32_t *from = owner[in[(first + t) * 20 + 1]];
      for (size_t word = 0; word < kStages * 4; ++word) {
        const size_t bit = word - word % (bytes / 4);
        out[(first + t) * 16 + word] = from[2] >> bit & 1 ? from[4 + word] : 0;
      }
    }
  }
}

void addSharedCases(std::vector<ConformanceCase> &cases) {
  auto add = [&](std::string name, const char *function, std::string symbol) {
    cases.push_back(slotCase(std::move(name), function, std::move(symbol), 8, 4));
    cases.back().expect = expectExchange;
  };
  add("ld_shared_u16", "ld_shared_u16", "conformance_ld_shared_u16");
  add("st_shared_u16", "st_shared_u16", "conformance_st_shared_u16");
  for (int words : {1, 2, 4}) {
    add(fmt::format("ld_shared<{}>", words), "ld_shared", fmt::format("conformance_ld_shared_{}", 4 * words));
    add(fmt::format("st_shared<{}>", words), "st_shared", fmt::format("conformance_st_shared_{}", 4 * words));
  }
  add("ld_shared_f32, st_shared_f32", "ld_shared_f32", "conformance_shared_f32");
  cases.back().functions.push_back("st_shared_f32");
  add("ld_shared_f32x2", "ld_shared_f32x2", "conformance_shared_f32x2");
  cases.back().functions.push_back("st_shared_f32x2");
}

void addGlobalCases(std::vector<ConformanceCase> &cases) {
  auto add = [&](std::string name, const char *function, std::string symbol) {
    cases.push_back(slotCase(std::move(name), function, std::move(symbol), 8, 4));
    cases.back().expect = expectGlobalCopy;
    cases.back().sharedBytes = 0;
  };
  add("ld_global_u8", "ld_global_u8", "conformance_ld_global_u8");
  add("ld_global_u16", "ld_global_u16", "conformance_ld_global_u16");
  for (int words : {1, 2, 4}) {
    add(fmt::format("ld_global<{}>", words), "ld_global", fmt::format("conformance_ld_global_{}", 4 * words));
    if (words == 1)
      cases.back().functions.emplace_back("ld_global_u32");
  }
  add("st_global_u16", "st_global_u16", "conformance_st_global_u16");
  add("st_global_u32", "st_global_u32", "conformance_st_global_u32");
  add("st_global", "st_global", "conformance_st_global_16");
  add("st_global_f32", "st_global_f32", "conformance_st_global_f32");
  for (int count : {2, 4}) {
    add(fmt::format("ld_global_f32<{0}>, st_global_f32<{0}>", count), "ld_global_f32",
        fmt::format("conformance_global_f32x{}", count));
    cases.back().functions.push_back("st_global_f32");
  }
  add("atomic_inc", "atomic_inc", "conformance_atomic_inc");
  cases.back().expect = expectIncrements;
}

void addCopyCases(std::vector<ConformanceCase> &cases) {
  for (size_t bytes : {4, 8, 16}) {
    ConformanceCase c =
        slotCase(fmt::format("cp_async<{}>", bytes), "cp_async", fmt::format("conformance_cp_async_{}", bytes), 20, 16);
    c.functions.insert(c.functions.end(), {"cp_async_commit", "cp_async_wait"});
    c.inputs = "random words and slots, half of the copies not valid; four groups, waits for 3, 2, 1 and 0";
    c.expect = [bytes](const WordList &in, WordList &out) { expectAsyncCopy(bytes, in, out); };
    cases.push_back(std::move(c));
  }
}

void addAddressCase(std::vector<ConformanceCase> &cases) {
  ConformanceCase c = slotCase("shared_storage, shared_address", "shared_storage", "conformance_shared_address", 1, 2);
  c.functions.push_back("shared_address");
  c.inputs = "random offsets";
  c.fill = [](Words &random, unsigned, WordList &in) {
    std::generate(in.begin(), in.end(), [&] { return random.below(8192); });
  };
  c.expect = [](const WordList &in, WordList &out) {
    for (size_t i = 0; i < in.size(); ++i) {
      out[2 * i] = in[i];
      out[2 * i + 1] = 0; // aligned to 1024 bytes
    }
  };
  cases.push_back(std::move(c));
}

} // namespace

void addMemoryCases(std::vector<ConformanceCase> &cases) {
  addSharedCases(cases);
  addGlobalCases(cases);
  addCopyCases(cases);
  addAddressCase(cases);
}

} // namespace fagen::lab

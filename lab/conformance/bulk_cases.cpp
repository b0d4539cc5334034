// fagen: conformance of what only sm_90a has: barriers in shared memory, bulk copies, stmatrix, warp groups.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cases.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

namespace fagen::lab {

namespace {

constexpr unsigned kCtas = 32;
constexpr size_t kHeadWords = size_t{kCtas} * 8;

ConformanceCase sm90aCase(std::string name, std::vector<std::string> functions, std::string symbol) {
  ConformanceCase c;
  c.name = std::move(name);
  c.functions = std::move(functions);
  c.symbol = std::move(symbol);
  c.kernels = KernelText::Sm90a;
  c.threads = kThreads;
  return c;
}

/// Words of 16-bit elements by their number.
uint16_t elementOf(const uint32_t *words, size_t i) { return static_cast<uint16_t>(words[i / 2] >> 16 * (i % 2)); }
void setElement(uint32_t *words, size_t i, uint16_t value) {
  const unsigned shift = 16 * (i % 2);
  words[i / 2] = (words[i / 2] & ~(0xffffu << shift)) | uint32_t{value} << shift;
}

unsigned boxElements(const MapShape &map) {
  return std::accumulate(map.box.begin(), map.box.end(), 1u, std::multiplies<>());
}

/// Calls visit(element of the box in shared memory, element of the tensor or -1) for every element; coordinates may be
/// outside.
template <class Visit> void forBox(const MapShape &map, const int *at, Visit visit) {
  const size_t rank = map.sizes.size();
  const unsigned columns = map.box[0], rowBytes = 2 * columns;
  for (unsigned i = 0; i < boxElements(map); ++i) {
    int64_t element = 0, step = 1;
    unsigned rest = i;
    for (size_t n = 0; n < rank; ++n) {
      const int64_t index = at[n] + static_cast<int64_t>(rest % map.box[n]);
      rest /= map.box[n];
      if (index < 0 || index >= map.sizes[n])
        element = INT64_MIN / 2;
      element += index * step;
      step *= map.sizes[n];
    }
    // A chunk's number within its row is permuted by the row's: in patterns of 8 rows of 128 bytes, of 64 or of 32.
    const unsigned row = i / columns, chunk = i % columns / 8;
    const unsigned permutation = map.swizzle == 128  ? row % 8
                                 : map.swizzle == 64 ? row / 2 % 4
                                 : map.swizzle == 32 ? row / 4 % 2
                                                     : 0;
    visit(row * rowBytes / 2 + 8 * (chunk ^ permutation) + i % 8, element < 0 ? -1 : element);
  }
}

/// A box of 8 rows, twice as many for each dimension above the second; sizes that it does not divide.
MapShape shapeOf(size_t rank, unsigned swizzle) {
  const int columns = swizzle ? static_cast<int>(swizzle) / 2 : 40;
  MapShape map;
  map.swizzle = swizzle;
  map.sizes = {columns + 8, 12, 3, 3, 3};
  map.box = {static_cast<unsigned>(columns), 8, 2, 2, 2};
  map.sizes.resize(rank);
  map.box.resize(rank);
  return map;
}

int64_t elements(const MapShape &map) {
  return std::accumulate(map.sizes.begin(), map.sizes.end(), int64_t{1}, std::multiplies<>());
}

/// From `before` elements before the tensor to its end; the first one is a multiple of 16 bytes, which copies ask for.
int coordinate(Words &random, const MapShape &map, size_t n, unsigned before) {
  const int step = n == 0 ? 8 : 1;
  const auto places = (static_cast<uint32_t>(map.sizes[n]) + before) / static_cast<uint32_t>(step);
  return (static_cast<int>(random.below(places)) - static_cast<int>(before) / step) * step + (n == 0 ? 0 : before != 0);
}

ConformanceCase loadCase(size_t rank, unsigned swizzle) {
  ConformanceCase c = sm90aCase(fmt::format("tma_load<{}> {}", rank, swizzle), {"tma_load", "tma_prefetch_map"},
                                fmt::format("conformance_tma_load_{}", rank));
  c.functions.insert(c.functions.end(), {"mbarrier_arrive_expect"});
  MapShape map = shapeOf(rank, swizzle);
  map.offsetWords = kHeadWords;
  c.inputs = fmt::format("random words and boxes, inside and outside; {}",
                         swizzle ? fmt::format("swizzle of {} bytes", swizzle) : "no swizzle");
  c.grid = kCtas;
  c.sharedBytes = 1024 + 2 * boxElements(map);
  c.inMap = map;
  c.inWords = kHeadWords + static_cast<size_t>(elements(map) + 1) / 2;
  c.outWords = size_t{kCtas} * boxElements(map) / 2;
  c.operands = c.inWords;
  c.results = 1;
  c.fill = [map](Words &random, unsigned, WordList &in) {
    std::generate(in.begin(), in.end(), [&] { return random.next(); });
    for (unsigned cta = 0; cta < kCtas; ++cta)
      for (size_t n = 0; n < map.sizes.size(); ++n)
        in[cta * 8 + n] = static_cast<uint32_t>(coordinate(random, map, n, map.box[n]));
  };
  c.expect = [map](const WordList &in, WordList &out) {
    for (unsigned cta = 0; cta < kCtas; ++cta)
      forBox(map, reinterpret_cast<const int *>(&in[cta * 8]), [&](unsigned place, int64_t element) {
        setElement(&out[size_t{cta} * boxElements(map) / 2], place,
                   element < 0 ? uint16_t{0} : elementOf(&in[kHeadWords], static_cast<size_t>(element)));
      });
  };
  return c;
}

/// Boxes lie one after the other along the last dimension, which counts CTAs twice; along the others they are clipped.
ConformanceCase storeCase(size_t rank, unsigned swizzle) {
  ConformanceCase c = sm90aCase(fmt::format("tma_store<{}> {}", rank, swizzle),
                                {"tma_store", "tma_commit", "tma_wait", "tma_wait_read", "fence_proxy_async"},
                                fmt::format("conformance_tma_store_{}", rank));
  MapShape map = shapeOf(rank, swizzle);
  map.sizes[rank - 1] = 2 * kCtas;
  map.box[rank - 1] = 1;
  const size_t boxWords = boxElements(map) / 2;
  c.inputs = "random words, boxes inside and across the far edges; two groups";
  c.grid = kCtas;
  c.sharedBytes = 1024 + 2 * static_cast<unsigned>((4 * boxWords + 1023) / 1024 * 1024);
  c.outMap = map;
  c.inWords = kHeadWords + 2 * kCtas * boxWords;
  c.outWords = static_cast<size_t>(elements(map) + 1) / 2;
  c.operands = c.inWords;
  c.fill = [map, boxWords](Words &random, unsigned, WordList &in) {
    std::generate(in.begin(), in.end(), [&] { return random.next(); });
    for (unsigned cta = 0; cta < kCtas; ++cta) {
      for (size_t n = 0; n + 1 < map.sizes.size(); ++n)
        in[cta * 8 + n] = static_cast<uint32_t>(coordinate(random, map, n, 0)); // a store may not begin before it
      in[cta * 8 + map.sizes.size() - 1] = cta;
    }
    in[7] = static_cast<uint32_t>(boxWords);
  };
  c.expect = [map, boxWords](const WordList &in, WordList &out) {
    std::fill(out.begin(), out.end(), kUnwritten);
    for (unsigned half = 0; half < 2; ++half)
      for (unsigned cta = 0; cta < kCtas; ++cta) {
        std::vector<int> at(map.sizes.size());
        std::transform(&in[cta * 8], &in[cta * 8 + at.size()], at.begin(),
                       [](uint32_t w) { return static_cast<int>(w); });
        at.back() += static_cast<int>(kCtas * half);
        forBox(map, at.data(), [&](unsigned place, int64_t element) {
          if (element >= 0)
            setElement(out.data(), static_cast<size_t>(element),
                       elementOf(&in[kHeadWords + (2 * cta + half) * boxWords], place));
        });
      }
  };
  return c;
}

ConformanceCase mbarrierCase() {
  ConformanceCase c = sm90aCase(
      "mbarrier", {"mbarrier_init", "mbarrier_init_fence", "mbarrier_arrive", "mbarrier_wait", "mbarrier_try_wait"},
      "conformance_mbarrier");
  c.inputs = "eight exchanges of random words with random partners";
  c.grid = kGrid;
  c.sharedBytes = 1024 + 4 * kThreads;
  c.operands = 2;
  c.inWords = kAll * c.operands;
  c.outWords = kAll;
  c.fill = [](Words &random, unsigned, WordList &in) {
    for (size_t t = 0; t < kAll; ++t) {
      in[2 * t] = random.next();
      in[2 * t + 1] = random.below(kThreads);
    }
  };
  c.expect = [](const WordList &in, WordList &out) {
    for (size_t t = 0; t < kAll; ++t)
      out[t] = in[2 * t];
    for (int round = 0; round < 8; ++round) {
      const WordList before = out;
      for (size_t t = 0; t < kAll; ++t)
        out[t] = (before[t] ^ before[t / kThreads * kThreads + in[2 * t + 1]]) * 2654435761u + 1;
    }
  };
  return c;
}

/// Four words a lane, and the place of the row whose address it gives: row l % 8 of matrix l / 8.
ConformanceCase storeMatrixCase(const char *name, bool transpose) {
  ConformanceCase c = sm90aCase(name, {name}, fmt::format("conformance_{}", name));
  c.inputs = "random words, rows in random order";
  c.grid = kGrid;
  c.sharedBytes = 2048;
  c.operands = 5;
  c.results = 4;
  c.inWords = kAll * c.operands;
  c.outWords = kAll * c.results;
  c.fill = [](Words &random, unsigned, WordList &in) {
    for (size_t warp = 0; warp < kAll / 32; ++warp) {
      uint32_t places[32];
      std::iota(std::begin(places), std::end(places), 0u);
      for (uint32_t i = 32; i > 1; --i)
        std::swap(places[i - 1], places[random.below(i)]);
      for (size_t lane = 0; lane < 32; ++lane) {
        uint32_t *words = &in[5 * (32 * warp + lane)];
        std::generate_n(words, 4, [&] { return random.next(); });
        words[4] = places[lane];
      }
    }
  };
  c.expect = [transpose](const WordList &in, WordList &out) {
    for (size_t warp = 0; warp < kAll / 32; ++warp)
      for (size_t lane = 0; lane < 32; ++lane) {
        const size_t matrix = lane / 8, row = lane % 8, place = in[5 * (32 * warp + lane) + 4];
        for (size_t column = 0; column < 8; ++column) {
          const size_t g = transpose ? column : row, t = transpose ? row : column;
          setElement(&out[4 * (32 * warp + place)], column,
                     elementOf(&in[5 * (32 * warp + 4 * g + t / 2) + matrix], t % 2));
        }
      }
  };
  return c;
}

ConformanceCase warpGroupCase() {
  ConformanceCase c = sm90aCase("registers of warp groups",
                                {"setmaxnreg_dec", "setmaxnreg_inc", "elect_one", "warp_group_index", "cluster_rank",
                                 "cluster_size", "cluster_arrive", "cluster_wait"},
                                "conformance_warp_groups");
  c.inputs = "every thread of 64 CTAs of 384";
  c.grid = kGrid;
  c.threads = 384;
  c.inWords = 1;
  c.outWords = size_t{kGrid} * c.threads;
  c.operands = c.outWords;
  c.fill = [](Words &, unsigned, WordList &) {};
  c.expect = [](const WordList &, WordList &out) {
    for (size_t t = 0; t < out.size(); ++t)
      out[t] = static_cast<uint32_t>(16 + 256 + t % 384 / 128 * 65536);
  };
  return c;
}

ConformanceCase launchCase() {
  ConformanceCase c = sm90aCase("launches", {"await_launches", "release_launches"}, "conformance_launches");
  c.inputs = "random words, of a launch before which all others have ended";
  c.grid = kGrid;
  c.inWords = c.outWords = c.operands = size_t{kGrid} * c.threads;
  c.fill = [](Words &random, unsigned, WordList &in) {
    std::generate(in.begin(), in.end(), [&] { return random.next(); });
  };
  c.expect = [](const WordList &in, WordList &out) {
    std::transform(in.begin(), in.end(), out.begin(), [](uint32_t word) { return word + 1; });
  };
  return c;
}

/// What each CTA of a cluster of two brings to both: 16 rows of 32 words, four times.
ConformanceCase clusterCase() {
  constexpr unsigned kClusters = 8, kRounds = 4, kTileRows = 16, kRowWords = 32;
  ConformanceCase c = sm90aCase(
      "clusters of two", {"tma_load_multicast", "mbarrier_arrive_at", "cluster_rank", "cluster_arrive", "cluster_wait"},
      "conformance_clusters");
  c.inputs = "random words; four tiles, half of each from either CTA";
  c.grid = 2 * kClusters;
  c.cluster = 2;
  c.sharedBytes = 1024 + 4 * kTileRows * kRowWords;
  c.inMap.sizes = {2 * kRowWords, int64_t{kClusters} * kRounds * kTileRows};
  c.inMap.box = {2 * kRowWords, kTileRows / 2};
  c.inWords = size_t{kClusters} * kRounds * kTileRows * kRowWords;
  c.outWords = size_t{2} * kClusters * kTileRows * kRowWords;
  c.operands = c.inWords;
  c.fill = [](Words &random, unsigned, WordList &in) {
    std::generate(in.begin(), in.end(), [&] { return random.next(); });
  };
  c.expect = [](const WordList &in, WordList &out) {
    constexpr size_t kTile = size_t{kTileRows} * kRowWords;
    for (size_t i = 0; i < out.size(); ++i) {
      const size_t cluster = i / kTile / 2, word = i % kTile;
      uint32_t mixed = 0;
      for (size_t round = 0; round < kRounds; ++round)
        mixed = (mixed ^ in[(cluster * kRounds + round) * kTile + word]) * 2654435761u + 1;
      out[i] = mixed;
    }
  };
  return c;
}

} // namespace

void addBulkCases(std::vector<ConformanceCase> &cases) {
  cases.push_back(mbarrierCase());
  for (size_t rank = 2; rank <= 5; ++rank)
    for (unsigned swizzle : {0u, 32u, 64u, 128u}) {
      if (rank == 4 || swizzle == 128 || rank == 2) {
        cases.push_back(loadCase(rank, swizzle));
        cases.push_back(storeCase(rank, swizzle));
      }
    }
  cases.push_back(storeMatrixCase("stmatrix_x4", false));
  cases.push_back(storeMatrixCase("stmatrix_x4_trans", true));
  cases.push_back(warpGroupCase());
  cases.push_back(launchCase());
  cases.push_back(clusterCase());
}

} // namespace fagen::lab

// fagen: each query tile of each head is one CTA's, in the order that the device library promises.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Kernels.h"

#include <fagen/device/params.h>
#include <limits>
#include <set>

namespace fagen::emulator::placesTest {
namespace {

constexpr int kTileRows = 16;

struct Place {
  unsigned batch, head, kvHead, row;
  auto operator<=>(const Place &) const = default;
};

/// Of the CTAs in the order of their numbers.
std::vector<Place> placesOf(const char *kernel, int batch, int heads, int headsPerKv, int seqQ, int seqKv) {
  device::MappedAttentionParams params = {};
  params.batch = batch, params.heads = heads, params.kv_heads = heads / headsPerKv, params.heads_per_kv = headsPerKv;
  params.seq_q = seqQ, params.seq_kv = seqKv;
  const bool isPacked = std::string(kernel) == "longest_first_packed";
  const int rows = isPacked ? seqQ * headsPerKv : seqQ, groups = isPacked ? params.kv_heads : heads;
  std::vector<Place> places(size_t((rows + kTileRows - 1) / kTileRows * groups * batch));
  params.o = places.data();
  params.by_tiles = device::make_divisor((seqQ + kTileRows - 1) / kTileRows);
  params.by_heads = device::make_divisor(heads), params.by_heads_per_kv = device::make_divisor(headsPerKv);
  const Launch launch = {kernel, unsigned(places.size()), 1, 0, {{params.o, sizeof(Place) * places.size(), true, "o"}}};
  const Report report = kernels("places.cu").launch(launch, &params, sizeof(params), {});
  EXPECT_TRUE(report.ok);
  return places;
}

TEST(Places, EachTileIsOneCtas) {
  for (const char *kernel : {"in_order", "longest_first", "longest_first_packed", "by_ticket", "all_by_ticket"})
    for (const auto &[batch, heads, headsPerKv, seqQ, seqKv] : std::vector<std::array<int, 5>>{
             {1, 1, 1, 1, 0}, {3, 6, 2, 100, 100}, {2, 5, 1, 33, 4000}, {7, 3, 3, 48, 1023}, {1, 8, 4, 16, 9000}}) {
      const std::vector<Place> places = placesOf(kernel, batch, heads, headsPerKv, seqQ, seqKv);
      const bool isPacked = std::string(kernel) == "longest_first_packed";
      std::set<Place> once;
      for (const Place &place : places) {
        EXPECT_TRUE(once.insert(place).second) << kernel;
        EXPECT_LT(place.batch, unsigned(batch));
        EXPECT_LT(place.head, unsigned(heads));
        EXPECT_EQ(place.kvHead, place.head / unsigned(headsPerKv));
        EXPECT_EQ(place.head % unsigned(isPacked ? headsPerKv : 1), 0u);
        EXPECT_LT(place.row, unsigned(isPacked ? seqQ * headsPerKv : seqQ));
        EXPECT_EQ(place.row % kTileRows, 0u);
      }
    }
}

TEST(Places, TheLastHeadsTakeTurns) {
  // 1024 tiles of 16 rows are 16384 keys: four heads of 4000 keys would take turns, of three two do.
  const std::vector<Place> places = placesOf("longest_first", 1, 3, 1, 48, 4000);
  const std::vector<Place> wanted = {{0, 2, 2, 32}, {0, 2, 2, 16}, {0, 2, 2, 0}, {0, 1, 1, 32}, {0, 0, 0, 32},
                                     {0, 1, 1, 16}, {0, 0, 0, 16}, {0, 1, 1, 0}, {0, 0, 0, 0}};
  EXPECT_EQ(places, wanted);
}

TEST(Places, ByTicketNoHeadTakesTurnsThatHasMoreThan8192Keys) {
  const std::vector<Place> places = placesOf("by_ticket", 1, 9, 1, 32, 40000);
  EXPECT_EQ(places[0], (Place{0, 8, 8, 16}));
  EXPECT_EQ(places[1], (Place{0, 8, 8, 0}));
  EXPECT_EQ(places[16], (Place{0, 0, 0, 16}));
  EXPECT_EQ(places[17], (Place{0, 0, 0, 0}));
}

TEST(Places, ByTicketAsManyHeadsTakeTurnsAsHave8192Keys) {
  // 16 heads of 512.
  const std::vector<Place> places = placesOf("by_ticket", 1, 40, 1, 32, 512);
  EXPECT_EQ(places[47], (Place{0, 16, 16, 0}));
  EXPECT_EQ(places[48], (Place{0, 15, 15, 16}));
  EXPECT_EQ(places[63], (Place{0, 0, 0, 16}));
  EXPECT_EQ(places[64], (Place{0, 15, 15, 0}));
}

TEST(Places, HeadsOfManyTilesAllTakeTurns) {
  // 128 rows are four heads of 32; the ninth is alone.
  const std::vector<Place> places = placesOf("all_by_ticket", 1, 9, 1, 48, 32);
  const std::vector<Place> first = {{0, 8, 8, 32}, {0, 8, 8, 16}, {0, 8, 8, 0},  {0, 7, 7, 32}, {0, 6, 6, 32},
                                    {0, 5, 5, 32}, {0, 4, 4, 32}, {0, 7, 7, 16}, {0, 6, 6, 16}};
  EXPECT_EQ(std::vector<Place>(places.begin(), places.begin() + 9), first);
  EXPECT_EQ(places[14], (Place{0, 4, 4, 0}));
  EXPECT_EQ(places[15], (Place{0, 3, 3, 32}));
  // Of two tiles only the last ones do: two heads of 32 rows.
  const std::vector<Place> few = placesOf("all_by_ticket", 1, 9, 1, 32, 32);
  EXPECT_EQ(few[13], (Place{0, 2, 2, 0}));
  EXPECT_EQ(few[14], (Place{0, 1, 1, 16}));
  EXPECT_EQ(few[15], (Place{0, 0, 0, 16}));
}

/// Also with none, with more than a float tells apart, and with more than half of what an int holds.
TEST(Places, WithManyKeysNoHeadTakesTurns) {
  for (int seqKv : {0, (1 << 24) + 1, (1 << 30) + 1, std::numeric_limits<int>::max()}) {
    for (const char *kernel : {"by_ticket", "longest_first"}) {
      const std::vector<Place> places = placesOf(kernel, 1, 4, 1, 32, seqKv);
      EXPECT_EQ(places[6], (Place{0, 0, 0, 16})) << kernel << " " << seqKv;
      EXPECT_EQ(places[7], (Place{0, 0, 0, 0})) << kernel << " " << seqKv;
    }
  }
}

TEST(Places, TilesOfAHeadFollowEachOtherWithoutAMask) {
  const std::vector<Place> places = placesOf("in_order", 1, 2, 1, 48, 4000);
  const std::vector<Place> wanted = {{0, 0, 0, 0}, {0, 0, 0, 16}, {0, 0, 0, 32},
                                     {0, 1, 1, 0}, {0, 1, 1, 16}, {0, 1, 1, 32}};
  EXPECT_EQ(places, wanted);
}

} // namespace
} // namespace fagen::emulator::placesTest

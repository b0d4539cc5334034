// fagen: wavefronts of layouts that are counted by hand, and requests put together from lanes that run one by one.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "emulator/memory/Banks.h"
#include "../Kernels.h"

#include <algorithm>
#include <fagen/device/tile/layout.h>
#include <functional>
#include <sstream>

namespace fagen::emulator::banksTest {
namespace {

struct Count {
  unsigned wavefronts, ideal;
  bool operator==(const Count &) const = default;
};
std::ostream &operator<<(std::ostream &out, const Count &count) {
  return out << count.wavefronts << " wavefronts, ideal " << count.ideal;
}

using Address = std::function<unsigned(unsigned lane)>;

Count count(BankAccess access, unsigned bytes, const Address &address) {
  BankRequest request{access, bytes, {}};
  for (unsigned lane = 0; lane < 32; ++lane)
    request.addresses[lane] = address(lane);
  return {bankWavefronts(request), idealWavefronts(request)};
}
Count load(unsigned bytes, const Address &address) { return count(BankAccess::kLoad, bytes, address); }
Count store(unsigned bytes, const Address &address) { return count(BankAccess::kStore, bytes, address); }
Count ldmatrix(const Address &address) { return count(BankAccess::kLdmatrix, 16, address); }

Address stride(unsigned bytes) {
  return [bytes](unsigned lane) { return lane * bytes; };
}

TEST(Banks, Words) {
  EXPECT_EQ(load(4, stride(4)), (Count{1, 1}));
  EXPECT_EQ(load(4, stride(0)), (Count{1, 1})); // one word for all
  EXPECT_EQ(load(4, stride(8)), (Count{2, 1}));
  EXPECT_EQ(load(4, stride(128)), (Count{32, 1}));
  EXPECT_EQ(load(4, stride(132)), (Count{1, 1}));
  EXPECT_EQ(load(4, [](unsigned lane) { return 4 * (31 - lane) + 1024; }), (Count{1, 1}));
  // Lanes 0 to 15 share a word, the others have one each in the same bank.
  EXPECT_EQ(load(4, [](unsigned lane) { return lane < 16 ? 0 : 128 * lane; }), (Count{17, 1}));
  EXPECT_EQ(store(4, stride(0)), (Count{1, 1}));
  EXPECT_EQ(store(4, stride(16)), (Count{4, 1}));
}

TEST(Banks, HalvesOfWords) {
  EXPECT_EQ(load(2, stride(2)), (Count{1, 1}));
  EXPECT_EQ(store(2, stride(2)), (Count{1, 1})); // two lanes write the halves of a word
  EXPECT_EQ(store(2, stride(64)), (Count{16, 1}));
  EXPECT_EQ(store(2, [](unsigned lane) { return lane / 8 * 128 + lane % 8 * 2; }), (Count{4, 1}));
}

TEST(Banks, EightBytesInHalfWarps) {
  EXPECT_EQ(load(8, stride(8)), (Count{2, 2}));
  EXPECT_EQ(load(8, stride(16)), (Count{4, 2}));   // lanes l and l + 8 meet
  EXPECT_EQ(load(8, stride(128)), (Count{32, 2})); // all 16 meet
  EXPECT_EQ(load(8, stride(136)), (Count{2, 2}));
  EXPECT_EQ(load(8, stride(0)), (Count{1, 1}));                                                   // merged
  EXPECT_EQ(load(8, [](unsigned lane) { return lane / 2 * 8; }), (Count{1, 1}));                  // lanes l, l ^ 1
  EXPECT_EQ(load(8, [](unsigned lane) { return (lane / 4 * 2 + lane % 2) * 8; }), (Count{1, 1})); // lanes l, l ^ 2
  EXPECT_EQ(load(8, [](unsigned lane) { return lane % 16 * 8; }), (Count{2, 2}));                 // lanes l, l ^ 16
  EXPECT_EQ(store(8, stride(8)), (Count{2, 2}));
  EXPECT_EQ(store(8, stride(0)), (Count{2, 2})); // stores are not merged
}

TEST(Banks, SixteenBytesInQuarterWarps) {
  EXPECT_EQ(load(16, stride(16)), (Count{4, 4}));
  EXPECT_EQ(load(16, stride(32)), (Count{8, 4}));
  EXPECT_EQ(load(16, stride(128)), (Count{32, 4})); // the column of a tile of 128-byte rows
  EXPECT_EQ(load(16, stride(144)), (Count{4, 4}));  // padded by 16 bytes
  EXPECT_EQ(load(16, stride(0)), (Count{2, 2}));    // each half warp is merged
  EXPECT_EQ(store(16, stride(16)), (Count{4, 4}));
  EXPECT_EQ(store(16, stride(128)), (Count{32, 4}));
  // Only the upper half warp asks for one row of 16 bytes.
  EXPECT_EQ(load(16, [](unsigned lane) { return lane < 16 ? 16 * lane : 512; }), (Count{3, 3}));
}

TEST(Banks, LanesThatTakeNoPart) {
  auto only = [](unsigned mask, const Address &address) {
    return [=](unsigned lane) { return mask >> lane & 1 ? address(lane) : kNoAddress; };
  };
  EXPECT_EQ(load(4, only(0xff, stride(128))), (Count{8, 1}));
  EXPECT_EQ(load(8, only(0xffff, stride(8))), (Count{1, 1}));
  EXPECT_EQ(load(16, only(0xff00ff, stride(16))), (Count{2, 2}));
  EXPECT_EQ(load(16, only(0x80000001, stride(128))), (Count{2, 1})); // two phases, though one wavefront could hold them
  EXPECT_EQ(store(8, only(0x11111111, stride(8))), (Count{2, 1}));
  EXPECT_EQ(load(4, only(0, stride(4))), (Count{0, 0}));
}

TEST(Banks, MatricesInFourPhases) {
  EXPECT_EQ(ldmatrix(stride(16)), (Count{4, 4}));
  EXPECT_EQ(ldmatrix(stride(128)), (Count{32, 4}));
  EXPECT_EQ(ldmatrix(stride(96)), (Count{8, 4}));   // 4 of 8 groups of banks
  EXPECT_EQ(ldmatrix(stride(192)), (Count{16, 4})); // 2 of them
  EXPECT_EQ(ldmatrix(stride(144)), (Count{4, 4}));
  EXPECT_EQ(ldmatrix(stride(0)), (Count{4, 4})); // one row for all: still four phases
}

TEST(Banks, XorSwizzleIsFreeOfConflicts) {
  using device::Swizzle;
  for (unsigned columns : {16u, 32u, 48u, 64u, 96u, 128u, 192u, 256u})
    for (unsigned row : {0u, 16u})
      for (unsigned column = 0; column < columns; column += 16) {
        auto address = [&](Swizzle swizzle) {
          return [=](unsigned lane) {
            return device::tile_offset(swizzle, 32, columns, 2, row + lane % 16, column + lane / 16 * 8);
          };
        };
        EXPECT_EQ(ldmatrix(address(Swizzle::kXor)), (Count{4, 4}))
            << columns << " columns, corner " << row << ", " << column;
        EXPECT_GT(ldmatrix(address(Swizzle::kNone)).wavefronts, 4u) << columns << " columns";
      }
}

TEST(Banks, AsynchronousCopiesWriteLikeStores) {
  EXPECT_EQ(count(BankAccess::kCopyAsync, 4, stride(4)), (Count{1, 1}));
  EXPECT_EQ(count(BankAccess::kCopyAsync, 8, stride(16)), (Count{4, 2}));
  EXPECT_EQ(count(BankAccess::kCopyAsync, 16, stride(16)), (Count{4, 4}));
  EXPECT_EQ(count(BankAccess::kCopyAsync, 16, stride(64)), (Count{16, 4}));
}

Count wmma(BankAccess access, unsigned stride, unsigned elementBytes) {
  Count sum{0, 0};
  for (const BankRequest &request : wmmaRequests(access, 1024, stride, elementBytes)) {
    sum.wavefronts += bankWavefronts(request);
    sum.ideal += idealWavefronts(request);
  }
  return sum;
}

TEST(Banks, WmmaAsPtxasMakesIt) {
  EXPECT_EQ(wmma(BankAccess::kWmmaLoad, 32, 2), (Count{8, 4}));   // rows i and i + 4 meet
  EXPECT_EQ(wmma(BankAccess::kWmmaLoad, 128, 2), (Count{32, 4})); // all eight do
  EXPECT_EQ(wmma(BankAccess::kWmmaLoad, 144, 2), (Count{4, 4}));
  // 8 bytes a lane, half a warp writes four rows of 32 bytes: rows 0 and 2 meet, 1 and 3 do.
  EXPECT_EQ(wmma(BankAccess::kWmmaStore, 64, 4), (Count{16, 8}));
  EXPECT_EQ(wmma(BankAccess::kWmmaStore, 256, 4), (Count{32, 8}));
  EXPECT_EQ(wmma(BankAccess::kWmmaStore, 288, 4), (Count{8, 8}));
  // 4 bytes a lane, the warp writes eight rows of 16 bytes.
  EXPECT_EQ(wmma(BankAccess::kWmmaStore, 32, 2), (Count{8, 4}));
  EXPECT_EQ(wmma(BankAccess::kWmmaStore, 144, 2), (Count{4, 4}));
}

TEST(Banks, WmmaTouchesEachByteOfTheMatrixOnce) {
  constexpr unsigned kStride = 80;
  auto touched = [](BankAccess access, unsigned elementBytes) {
    std::map<unsigned, int> bytes;
    for (const BankRequest &request : wmmaRequests(access, 0, kStride, elementBytes))
      for (unsigned address : request.addresses)
        for (unsigned byte = 0; byte < request.bytes; ++byte)
          ++bytes[address + byte];
    return bytes;
  };
  auto matrix = [](unsigned elementBytes) {
    std::map<unsigned, int> bytes;
    for (unsigned row = 0; row < 16; ++row)
      for (unsigned byte = 0; byte < 16 * elementBytes; ++byte)
        ++bytes[row * kStride + byte];
    return bytes;
  };
  EXPECT_EQ(touched(BankAccess::kWmmaLoad, 2), matrix(2));
  EXPECT_EQ(touched(BankAccess::kWmmaStore, 2), matrix(2));
  EXPECT_EQ(touched(BankAccess::kWmmaStore, 4), matrix(4));
}

const std::string kFile = "banks.cu";

/// These kernels write where lanes and CTAs meet: that is what is counted here.
void expectNothingButRaces(const Report &report) {
  for (const Finding &finding : report.findings)
    EXPECT_EQ(finding.kind, "race") << text(report);
}

/// What the site marked so counted in a run with one row of 16 bytes as input.
BankSite siteOf(KernelRun run, const std::string &mark) {
  run.options.banks = true;
  std::vector<unsigned> in(4), out(32);
  const Report report = launch(run, in, out);
  expectNothingButRaces(report);
  for (const BankSite &site : report.banks)
    if (site.line == lineOf(kFile, mark))
      return site;
  ADD_FAILURE() << "no accesses at [" << mark << "]";
  return {};
}

void expectCounts(const BankSite &site, const std::string &kind, unsigned bytes, uint64_t requests, uint64_t wavefronts,
                  uint64_t ideal) {
  EXPECT_EQ(site.kind, kind);
  EXPECT_EQ(site.bytes, bytes);
  EXPECT_EQ(site.requests, requests);
  EXPECT_EQ(site.wavefronts, wavefronts);
  EXPECT_EQ(site.ideal, ideal);
}

TEST(BankSites, NothingIsCountedUnasked) {
  std::vector<unsigned> in(4), out(32);
  EXPECT_TRUE(launch({.file = kFile, .symbol = "strided", .sharedBytes = 4096, .count = 4}, in, out).banks.empty());
}

TEST(BankSites, WarpsAndCtasAddUp) {
  const KernelRun run = {.file = kFile, .symbol = "strided", .grid = 3, .threads = 64, .sharedBytes = 4096, .count = 8};
  expectCounts(siteOf(run, "store"), "store", 4, 6, 12, 6);
  expectCounts(siteOf(run, "load"), "load", 4, 6, 12, 6);
}

TEST(BankSites, OrderOfLanesDoesNotMatter) {
  KernelRun run = {.file = kFile, .symbol = "strided", .grid = 3, .threads = 64, .sharedBytes = 4096, .count = 128};
  const BankSite natural = siteOf(run, "load");
  run.options.seed = 5;
  const BankSite drawn = siteOf(run, "load");
  expectCounts(drawn, "load", 4, 6, 192, 6);
  EXPECT_EQ(natural.worst, drawn.worst);
}

TEST(BankSites, WorstRequest) {
  const BankSite site = siteOf({.file = kFile, .symbol = "strided", .sharedBytes = 4096, .count = 64}, "store");
  ASSERT_EQ(site.worst.size(), 32u);
  EXPECT_EQ(site.worst[3], 192u);
}

TEST(BankSites, PredicatedLanesAreRequestsOfTheirOwn) {
  // Five times: 32 lanes, no conflict; and 8 lanes, whose words lie 512 bytes apart: eight wavefronts.
  const BankSite site = siteOf({.file = kFile, .symbol = "predicated", .sharedBytes = 4096, .count = 5}, "write");
  expectCounts(site, "store", 4, 10, 45, 10);
  EXPECT_EQ(site.worst[1], kNoAddress);
  EXPECT_EQ(site.worst[4], 512u);
}

TEST(BankSites, AMeetingOfTheWarpEndsRequests) {
  // Each turn: one request of 32 lanes and two of 16.
  expectCounts(siteOf({.file = kFile, .symbol = "uneven", .sharedBytes = 4096, .count = 3}, "uneven"), "store", 4, 6, 6,
               6);
}

TEST(BankSites, MatricesAndCopies) {
  const KernelRun run = {.file = kFile, .symbol = "matrices", .sharedBytes = 4096, .count = 128};
  expectCounts(siteOf(run, "copy"), "cp_async", 16, 1, 32, 4);
  expectCounts(siteOf(run, "ldmatrix"), "ldmatrix", 16, 1, 32, 4);
}

// What ncu counts on a GPU is compared with the same table.
TEST(BankProbe, AsTheTableSays) {
  std::string error;
  const auto probe = Module::compile(FAGEN_BANK_PROBE ".cu", error);
  ASSERT_TRUE(probe) << error;
  std::ifstream table(FAGEN_BANK_PROBE ".txt");
  std::string line;
  int probes = 0;
  while (std::getline(table, line)) {
    std::istringstream row(line);
    std::string name;
    uint64_t wavefronts, ideal;
    if (line.starts_with('#') || !(row >> name >> wavefronts >> ideal))
      continue;
    SCOPED_TRACE(name);
    std::vector<unsigned> out(32);
    const struct {
      unsigned *out;
      long long unused[2];
    } arguments = {out.data(), {}};
    const Launch launch = {name, 1, 32, 8192, {{out.data(), 128, true, "out"}}};
    const Report report = probe->launch(launch, &arguments, sizeof(arguments), {.banks = true});
    expectNothingButRaces(report);
    const std::string kind = name.substr(0, name.find('_'));
    const auto site =
        std::find_if(report.banks.begin(), report.banks.end(), [&](const BankSite &s) { return s.kind == kind; });
    ASSERT_NE(site, report.banks.end());
    const std::string width = name.substr(kind.size() + 1);
    expectCounts(*site, kind, static_cast<unsigned>(std::stoi(width)), 1, wavefronts, ideal);
    ++probes;
  }
  EXPECT_GT(probes, 40);
}

} // namespace
} // namespace fagen::emulator::banksTest

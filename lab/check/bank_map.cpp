// fagen: a picture of one warp's request: which lane asks which bank of shared memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bank_map.h"

#include "emulator/memory/Banks.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

namespace fagen::lab {

namespace {

using emulator::BankRequest;
using emulator::kBanks;

constexpr int kCellWidth = 18, kCellHeight = 13, kLeft = 74, kRight = 160, kTop = 82, kPhaseGap = 8;
constexpr int kWidth = kLeft + int{kBanks} * kCellWidth + kRight;

/// Classes of cells, by words asked of the bank: 1, 2, to 4, to 8, more.
constexpr struct {
  unsigned most;
  const char *label;
} kClasses[] = {{1, "1"}, {2, "2"}, {4, "3-4"}, {8, "5-8"}, {~0u, "more"}};

int classOf(unsigned words) {
  int index = 0;
  while (words > kClasses[index].most)
    ++index;
  return index;
}

constexpr const char *kStyle = R"(<style>
text { font: 11px sans-serif; fill: #222 }
.title { font-size: 14px; font-weight: bold }
.axis { font-size: 9px; text-anchor: middle }
.lane { font-size: 9px; text-anchor: end }
.count { font-size: 9px; text-anchor: middle }
.page { fill: #fff }
.grid { fill: none; stroke: #bbb; stroke-width: 0.5 }
.m0 { fill: #b8cfe3 } .m1 { fill: #fde0a0 } .m2 { fill: #f7ab5e } .m3 { fill: #e0632f } .m4 { fill: #93180f }
text.on3, text.on4 { fill: #fff } text.on0, text.on1, text.on2 { fill: #222 }
@media screen and (prefers-color-scheme: dark) {
text { fill: #ddd }
.page { fill: #16181c }
.grid { stroke: #444a52 }
.m0 { fill: #35506b } .m1 { fill: #8a6d1f } .m2 { fill: #b8752a } .m3 { fill: #d9532c } .m4 { fill: #ff8f7a }
text.on0, text.on1, text.on2, text.on3 { fill: #fff } text.on4 { fill: #16181c }
}
</style>
)";

std::string escape(const std::string &text) {
  std::string escaped;
  for (char c : text)
    escaped += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return escaped;
}

/// Bank numbers above and light lines around the cells of `rows` lanes.
std::string grid(int top, int rows) {
  std::string path;
  for (unsigned bank = 0; bank <= kBanks; ++bank)
    path += fmt::format("M{} {}v{}", kLeft + int(bank) * kCellWidth, top, rows * kCellHeight);
  for (int row = 0; row <= rows; ++row)
    path += fmt::format("M{} {}h{}", kLeft, top + row * kCellHeight, int{kBanks} * kCellWidth);
  return fmt::format("<path class=\"grid\" d=\"{}\"/>\n", path);
}

/// The lanes of one phase from `top` on; returns where the next one begins.
int drawPhase(std::string &svg, const BankRequest &request, unsigned lanes, int number, int top) {
  std::array<unsigned, kBanks> words;
  const unsigned wavefronts = emulator::phaseWavefronts(request, lanes, words);
  int row = 0;
  for (unsigned rest = lanes; rest; rest &= rest - 1, ++row) {
    const int lane = std::countr_zero(rest);
    const int y = top + row * kCellHeight;
    svg += fmt::format("<text class=\"lane\" x=\"{}\" y=\"{}\">{}</text>\n", kLeft - 6, y + 10, lane);
    const unsigned address = request.addresses[lane];
    for (unsigned word = address / 4; word <= (address + request.bytes - 1) / 4; ++word) {
      const int x = kLeft + static_cast<int>(word % kBanks) * kCellWidth;
      const unsigned count = words[word % kBanks];
      svg += fmt::format("<rect class=\"m{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>", classOf(count), x, y,
                         kCellWidth, kCellHeight);
      if (count > 1)
        svg += fmt::format("<text class=\"count on{}\" x=\"{}\" y=\"{}\">{}</text>", classOf(count), x + kCellWidth / 2,
                           y + 10, count);
    }
    svg += '\n';
  }
  svg += grid(top, row);
  svg += fmt::format("<text x=\"{}\" y=\"{}\">phase {}: {} wavefront{}</text>\n", kLeft + int{kBanks} * kCellWidth + 10,
                     top + row * kCellHeight / 2 + 4, number, wavefronts, wavefronts == 1 ? "" : "s");
  return top + row * kCellHeight + kPhaseGap;
}

void drawLegend(std::string &svg, int y) {
  svg += fmt::format("<text x=\"{}\" y=\"{}\">different words that the phase asks of a bank:</text>\n", kLeft, y + 10);
  int x = kLeft + 262;
  for (size_t i = 0; i < std::size(kClasses); ++i) {
    svg += fmt::format("<rect class=\"m{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/><text x=\"{}\" y=\"{}\">"
                       "{}</text>\n",
                       i, x, y, kCellWidth, kCellHeight, x + kCellWidth + 4, y + 10, kClasses[i].label);
    x += kCellWidth + 40;
  }
}

emulator::BankAccess accessOf(const std::string &kind) {
  using emulator::BankAccess;
  for (BankAccess access :
       {BankAccess::kLoad, BankAccess::kStore, BankAccess::kLdmatrix, BankAccess::kCopyAsync, BankAccess::kWmmaLoad})
    if (kind == emulator::bankAccessName(access))
      return access;
  return BankAccess::kWmmaStore;
}

} // namespace

std::string bankMap(const emulator::BankSite &site, const std::string &title, const std::string &subtitle) {
  BankRequest request{accessOf(site.kind), site.bytes, {}};
  std::copy_n(site.worst.begin(), request.addresses.size(), request.addresses.begin());
  std::string body;
  for (unsigned bank = 0; bank < kBanks; ++bank)
    body += fmt::format("<text class=\"axis\" x=\"{}\" y=\"{}\">{}</text>\n",
                        kLeft + int(bank) * kCellWidth + kCellWidth / 2, kTop - 5, bank);
  body += fmt::format("<text class=\"lane\" x=\"{}\" y=\"{}\">lane \\ bank</text>\n", kLeft - 6, kTop - 5);
  int y = kTop, number = 0;
  for (unsigned lanes : emulator::bankPhases(request))
    y = drawPhase(body, request, lanes, number++, y);
  drawLegend(body, y + 6);
  const int height = y + 6 + kCellHeight + 14;
  return fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
                     "role=\"img\">\n<title>{2}</title>\n{4}<rect class=\"page\" width=\"{0}\" height=\"{1}\"/>\n"
                     "<text class=\"title\" x=\"12\" y=\"24\">{2}</text>\n<text x=\"12\" y=\"44\">{3}</text>\n{5}"
                     "</svg>\n",
                     kWidth, height, escape(title), escape(subtitle), kStyle, body);
}

} // namespace fagen::lab

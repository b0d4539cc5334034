// fagen: how often the 32 banks of shared memory make a warp wait.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Banks.h"

#include <algorithm>
#include <bit>

namespace fagen::emulator {

const char *bankAccessName(BankAccess access) {
  switch (access) {
  case BankAccess::kLoad:
    return "load";
  case BankAccess::kStore:
    return "store";
  case BankAccess::kLdmatrix:
    return "ldmatrix";
  case BankAccess::kCopyAsync:
    return "cp_async";
  case BankAccess::kWmmaLoad:
    return "wmma_load";
  case BankAccess::kWmmaStore:
    return "wmma_store";
  }
  return "";
}

namespace {

unsigned activeLanes(const BankRequest &request) {
  unsigned lanes = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if (request.addresses[lane] != kNoAddress)
      lanes |= 1u << lane;
  return lanes;
}

/// Whether each two of the lanes whose numbers differ in bit `distance` alone ask for the same.
bool pairsAgree(const BankRequest &request, unsigned lanes, unsigned distance) {
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned other = lane ^ distance;
    if ((lanes >> lane & 1) && (lanes >> other & 1) && request.addresses[lane] != request.addresses[other])
      return false;
  }
  return true;
}

/// Two neighbouring phases of a load are served as one when they need no more than half of the registers' bandwidth:
/// all neighbours, or all lanes two apart, ask for the same.
bool isMerged(const BankRequest &request, unsigned lanes) {
  return request.access == BankAccess::kLoad && (pairsAgree(request, lanes, 1) || pairsAgree(request, lanes, 2));
}

} // namespace

std::vector<unsigned> bankPhases(const BankRequest &request) {
  const unsigned active = activeLanes(request);
  const unsigned width = std::clamp(128 / request.bytes, 8u, 32u); // lanes of a phase: 128 bytes at most
  std::vector<unsigned> phases;
  auto addPhase = [&](unsigned lanes) {
    if (lanes)
      phases.push_back(lanes);
  };
  if (width == 32) {
    addPhase(active);
    return phases;
  }
  for (unsigned first = 0; first < 32; first += 2 * width) {
    const unsigned low = ((1u << width) - 1) << first;
    const unsigned both = active & (low | low << width);
    if (isMerged(request, both)) {
      addPhase(both);
    } else {
      addPhase(both & low);
      addPhase(both & ~low);
    }
  }
  return phases;
}

std::vector<BankRequest> wmmaRequests(BankAccess access, unsigned address, unsigned stride, unsigned elementBytes) {
  std::vector<BankRequest> requests;
  if (access == BankAccess::kWmmaLoad) {
    BankRequest &rows = requests.emplace_back(BankRequest{access, 16, {}});
    for (unsigned lane = 0; lane < 32; ++lane)
      rows.addresses[lane] = address + lane % 16 * stride + lane / 16 * 16;
    return requests;
  }
  for (unsigned quarter = 0; quarter < 4; ++quarter) {
    BankRequest &pairs = requests.emplace_back(BankRequest{access, 2 * elementBytes, {}});
    for (unsigned lane = 0; lane < 32; ++lane)
      pairs.addresses[lane] =
          address + (quarter % 2 * 8 + lane / 4) * stride + (quarter / 2 * 8 + lane % 4 * 2) * elementBytes;
  }
  return requests;
}

unsigned phaseWavefronts(const BankRequest &request, unsigned lanes, std::array<unsigned, kBanks> &words) {
  std::array<unsigned, 32 * 4> asked;
  size_t count = 0;
  for (; lanes; lanes &= lanes - 1) {
    const unsigned address = request.addresses[std::countr_zero(lanes)];
    for (unsigned word = address / kBankBytes;
         word <= (address + request.bytes - 1) / kBankBytes && count < asked.size(); ++word)
      asked[count++] = word;
  }
  std::sort(asked.begin(), asked.begin() + count);
  const auto end = std::unique(asked.begin(), asked.begin() + count);
  words.fill(0);
  for (auto word = asked.begin(); word != end; ++word)
    ++words[*word % kBanks];
  return *std::max_element(words.begin(), words.end());
}

unsigned bankWavefronts(const BankRequest &request) {
  unsigned wavefronts = 0;
  std::array<unsigned, kBanks> words;
  for (unsigned lanes : bankPhases(request))
    wavefronts += phaseWavefronts(request, lanes, words);
  return wavefronts;
}

unsigned idealWavefronts(const BankRequest &request) {
  constexpr unsigned kWavefrontBytes = 128;
  const unsigned bytes = static_cast<unsigned>(std::popcount(activeLanes(request))) * request.bytes;
  return std::min(static_cast<unsigned>(bankPhases(request).size()), (bytes + kWavefrontBytes - 1) / kWavefrontBytes);
}

void BankSites::add(int line, const BankRequest &request) {
  const unsigned wavefronts = bankWavefronts(request), ideal = idealWavefronts(request);
  if (ideal == 0) // no lane took part
    return;
  add({line, request.access, request.bytes}, {1, wavefronts, ideal, wavefronts - ideal, request});
}

void BankSites::add(const Key &key, const Counts &counts) {
  Counts &site = sites[key];
  // Of equally bad ones the first in the order of addresses, whichever CTA was quicker.
  if (site.requests == 0 || counts.worstExcess > site.worstExcess ||
      (counts.worstExcess == site.worstExcess && counts.worst.addresses < site.worst.addresses)) {
    site.worstExcess = counts.worstExcess;
    site.worst = counts.worst;
  }
  site.requests += counts.requests;
  site.wavefronts += counts.wavefronts;
  site.ideal += counts.ideal;
}

void BankSites::merge(const BankSites &other) {
  for (const auto &[key, counts] : other.sites)
    add(key, counts);
}

std::vector<BankSite> BankSites::list() const {
  std::vector<BankSite> result;
  for (const auto &[key, counts] : sites)
    result.push_back({bankAccessName(key.access),
                      key.line,
                      key.bytes,
                      counts.requests,
                      counts.wavefronts,
                      counts.ideal,
                      {counts.worst.addresses.begin(), counts.worst.addresses.end()}});
  return result;
}

void BankCounter::begin(unsigned threads) {
  sites.clear();
  warps.assign((threads + 31) / 32, {});
  for (unsigned w = 0; w < warps.size(); ++w) {
    const unsigned lanes = std::min(32u, threads - 32 * w);
    warps[w].lanes = lanes == 32 ? ~0u : (1u << lanes) - 1;
  }
}

void BankCounter::add(unsigned thread, BankAccess access, unsigned address, unsigned bytes, int line,
                      const void *caller) {
  WarpCalls &warp = warps[thread / 32];
  const unsigned lane = thread % 32;
  Open &open = warp.open[{caller, line, access, bytes}];
  const size_t index = open.made[lane]++ - open.first;
  if (index == open.requests.size()) {
    open.requests.push_back({access, bytes, {}});
    open.requests.back().addresses.fill(kNoAddress);
    open.missing.push_back(warp.lanes);
  }
  open.requests[index].addresses[lane] = address;
  open.missing[index] &= ~(1u << lane);
  while (!open.missing.empty() && open.missing.front() == 0)
    flush(line, open, 1);
}

void BankCounter::addMatrix(BankAccess access, unsigned address, unsigned stride, unsigned elementBytes, int line) {
  for (const BankRequest &request : wmmaRequests(access, address, stride, elementBytes))
    sites.add(line, request);
}

void BankCounter::flush(int line, Open &open, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    sites.add(line, open.requests.front());
    open.requests.pop_front();
    open.missing.pop_front();
    ++open.first;
  }
}

void BankCounter::meet(unsigned warp) {
  for (auto &[call, open] : warps[warp].open) {
    flush(call.line, open, open.requests.size());
    open.made.fill(open.first);
  }
}

const BankSites &BankCounter::finish() {
  for (unsigned w = 0; w < warps.size(); ++w)
    meet(w);
  return sites;
}

} // namespace fagen::emulator

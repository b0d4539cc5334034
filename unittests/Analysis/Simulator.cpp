// fagen: runs a kernel's body with vector clocks.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Simulator.h"

#include "fagen/Analysis/Access.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>

using namespace fagen;
using namespace fagen::ir;

namespace {

constexpr unsigned kMaxThreads = 128;
using Clock = std::array<uint32_t, kMaxThreads>;

class Simulator {
public:
  Simulator(const Kernel &kernel, std::map<std::string, int64_t> lets)
      : kernel(kernel), role(kernel.roles.front()), values(std::move(lets)), threads(kernel.threads),
        clocks(kernel.threads), bytes(kernel.sharedBytes / 2), readTimes(bytes.size() * kernel.threads),
        inFlight(kernel.threads, std::deque<Flight>(1)) {
    for (const Constant &constant : kernel.constants)
      values[constant.name] = constant.value;
    for (unsigned t = 0; t < threads; ++t)
      clocks[t][t] = 1;
  }

  /// Whether no two accesses were unordered.
  bool run() {
    run(role.body);
    return isClean;
  }

private:
  /// Two of them: nothing is smaller than a 16-bit element.
  struct Bytes {
    uint32_t writeTime = 0;
    uint16_t writer = 0;
    uint16_t flights = 0; ///< asynchronous copies to them that are not complete
  };
  using Flight = std::vector<unsigned>; ///< indices of bytes

  int64_t evaluate(const Expr &expr) const {
    return *expr.evaluate([&](llvm::StringRef name) -> std::optional<int64_t> {
      auto it = values.find(name.str());
      return it == values.end() ? std::nullopt : std::optional<int64_t>(it->second);
    });
  }

  void run(const Block &block) {
    for (const std::unique_ptr<Op> &op : block.ops)
      if (isClean)
        run(*op);
  }

  void run(const Op &op) {
    switch (op.kind) {
    case OpKind::Loop: {
      const std::string variable = op.text(Attr::Variable).str();
      const int64_t begin = evaluate(op.expr(Attr::Begin)), end = evaluate(op.expr(Attr::End));
      for (int64_t value = begin; value < end; ++value) {
        values[variable] = value;
        run(op.body);
      }
      return;
    }
    case OpKind::Barrier:
      return op.text(Attr::Scope) == "cta" ? join(0, threads) : op.text(Attr::Scope) == "warp" ? joinWarps() : void();
    case OpKind::CopyCommit:
      for (auto &flights : inFlight)
        flights.emplace_back();
      return;
    case OpKind::CopyWait:
      return wait(op.integer(Attr::Pending));
    default:
      return access(op);
    }
  }

  void joinWarps() {
    for (unsigned first = 0; first < threads; first += 32)
      join(first, 32);
  }

  void join(unsigned first, unsigned count) {
    Clock all{};
    for (unsigned t = first; t < first + count; ++t)
      for (unsigned i = 0; i < threads; ++i)
        all[i] = std::max(all[i], clocks[t][i]);
    for (unsigned t = first; t < first + count; ++t) {
      clocks[t] = all;
      ++clocks[t][t];
    }
  }

  /// A thread's groups: the last one is open. Those beyond the newest `pending` closed ones land now at the latest.
  void wait(int64_t pending) {
    for (unsigned t = 0; t < threads; ++t) {
      while (int64_t(inFlight[t].size()) > pending + 1) {
        for (unsigned at : inFlight[t].front()) {
          --bytes[at].flights;
          bytes[at].writer = t;
          bytes[at].writeTime = clocks[t][t];
        }
        inFlight[t].pop_front();
      }
    }
  }

  void access(const Op &op) {
    if (op.has(Attr::When) && evaluate(op.expr(Attr::When)) == 0)
      return;
    for (unsigned i = 0; i < op.operands.size(); ++i) {
      const Buffer *buffer = op.operands[i].buffer;
      if (!buffer || buffer->space != Space::Shared)
        continue;
      const int64_t position = op.operands[i].position ? evaluate(op.operands[i].position) : 0;
      const uint64_t base = *buffer->offset + position % buffer->stages * buffer->stageBytes();
      const Effect effect = opInfo(op.kind).operands[i].effect;
      const bool isAsync = op.kind == OpKind::CopyIssue && op.text(Attr::Kind) == "cp_async";
      forEachAccess(kernel, role, op, i, [&](ThreadRange who, unsigned first, unsigned count) {
        for (unsigned byte = base + first; byte < base + first + count; byte += 2)
          for (unsigned t = who.first; t < who.first + who.count; ++t)
            if (!who.isUnknownOne || t == lanesChoice(who, byte / 2))
              touch(t, byte / 2, effect != Effect::Write, effect != Effect::Read, isAsync);
      });
    }
  }

  /// A layout of fragments that is nobody's: neighbouring elements in lanes far apart.
  static unsigned lanesChoice(ThreadRange who, unsigned at) { return who.first + (7 * at + 3) % who.count; }

  void touch(unsigned thread, unsigned at, bool reads, bool writes, bool isAsync) {
    const Clock &seen = clocks[thread];
    uint32_t *times = &readTimes[size_t(at) * threads];
    isClean &= bytes[at].flights == 0 && bytes[at].writeTime <= seen[bytes[at].writer];
    if (reads)
      times[thread] = seen[thread];
    if (!writes)
      return;
    for (unsigned reader = 0; reader < threads; ++reader) {
      isClean &= times[reader] <= seen[reader];
      times[reader] = 0;
    }
    if (isAsync) {
      inFlight[thread].back().push_back(at);
      ++bytes[at].flights;
    } else {
      bytes[at].writer = thread;
      bytes[at].writeTime = seen[thread];
    }
  }

  const Kernel &kernel;
  const Role &role;
  std::map<std::string, int64_t> values;
  const unsigned threads;
  std::vector<Clock> clocks;
  std::vector<Bytes> bytes;
  std::vector<uint32_t> readTimes; ///< by bytes and thread; 0: not since the last write
  std::vector<std::deque<Flight>> inFlight;
  bool isClean = true;
};

} // namespace

bool fagen::test::isFreeOfRaces(const Kernel &kernel, const std::map<std::string, int64_t> &lets) {
  return Simulator(kernel, lets).run();
}

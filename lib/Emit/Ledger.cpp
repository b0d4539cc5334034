// fagen: the ledger in a kernel's head.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Ledger.h"

#include "fagen/IR/Queries.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <fmt/format.h>

#include <map>

using namespace fagen;
using namespace fagen::ir;

namespace {

constexpr size_t kWordColumns = 9;   ///< "barrier  ", before what it is
constexpr size_t kLineColumns = 130; ///< of a line that takes more than one

/// By keys in the order in which they come up.
template <class Key, class Value> using Ordered = llvm::MapVector<Key, Value, std::map<Key, unsigned>>;

/// Of a ledger entry's text, "RAW k: load.copy_issue@20 -> math.mma_issue@12".
struct Covered {
  llvm::StringRef kind, buffer;
};

llvm::SmallVector<Covered> coveredBy(const LedgerEntry &entry) {
  llvm::SmallVector<llvm::StringRef> pairs;
  llvm::SmallVector<Covered> covered;
  llvm::StringRef(entry.covers).split(pairs, "; ", -1, /*KeepEmpty=*/false);
  for (llvm::StringRef pair : pairs) {
    auto [kind, buffer] = pair.split(':').first.split(' ');
    covered.push_back({kind, buffer});
  }
  return covered;
}

/// The buffers of each kind of hazard, in the order in which they come up.
class Hazards {
public:
  void add(const Covered &covered) { buffers[covered.kind].insert(covered.buffer); }

  /// "RAW, WAR"
  std::string kinds() const { return llvm::join(llvm::make_first_range(buffers), ", "); }

  /// "RAW q, WAR k q"
  std::string text() const {
    std::vector<std::string> parts;
    for (const auto &[kind, names] : buffers)
      parts.push_back(kind.str() + " " + llvm::join(names, " "));
    return llvm::join(parts, ", ");
  }

private:
  std::map<llvm::StringRef, llvm::SetVector<llvm::StringRef>> buffers; ///< RAW, WAR, WAW
};

class Ledger {
public:
  explicit Ledger(const Kernel &kernel) : kernel(kernel) {
    for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
      if (buffer->guard) {
        bars.insert(buffer->guard->full);
        bars.insert(buffer->guard->empty);
        mbarriers.insert(buffer->guard->full->name);
        if (buffer->guard->empty)
          mbarriers.insert(buffer->guard->empty->name);
      }
    for (const LedgerEntry &entry : kernel.ledger)
      for (const Covered &covered : coveredBy(entry))
        hazards[covered.buffer].add(covered);
  }

  std::vector<std::string> lines() const {
    if (bars.empty())
      return siteLines();
    std::vector<std::string> lines;
    using Said = std::pair<llvm::StringRef, std::string>;
    Ordered<Said, std::vector<llvm::StringRef>> guarded; // names, by what is said of them
    for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
      if (buffer->guard)
        guarded[{buffer->isRing ? "ring" : "buffer", guardText(*buffer)}].push_back(buffer->name);
    for (const auto &[said, names] : guarded)
      lines.push_back(fmt::format("{:<8} {:<9} {}", said.first.str(), llvm::join(names, " "), said.second));
    llvm::append_range(lines, objectLines());
    return lines;
  }

private:
  /// Sites of the loops that one was split into often do the same: they have a line together.
  std::vector<std::string> siteLines() const {
    Ordered<std::pair<llvm::StringRef, std::string>, std::string> alike;
    std::string others;
    for (const LedgerEntry &entry : kernel.ledger)
      if (entry.covers.empty())
        others += fmt::format(" {}", entry.site);
      else
        alike[{entry.what, pairsOf(entry)}] += fmt::format(" {:>2}", entry.site);
    std::vector<std::string> lines;
    for (const auto &[entry, sites] : alike)
      lines.push_back(fmt::format("site{}  {:<14} {}", sites, entry.first.str(), entry.second));
    if (!others.empty())
      lines.push_back("sites" + others + ": in the middle of others' chains");
    return lines;
  }

  /// The pairs that it orders, or, where they fill more than a line, their buffers.
  static std::string pairsOf(const LedgerEntry &entry) {
    constexpr size_t kBefore = 30; // "site  4 10  copy_wait 0    "
    if (entry.covers.size() + kBefore <= kLineColumns)
      return entry.covers;
    Hazards hazards;
    for (const Covered &covered : coveredBy(entry))
      hazards.add(covered);
    return hazards.text();
  }

  std::string guardText(const Buffer &buffer) const {
    const Guard &guard = *buffer.guard;
    std::string line = fmt::format("filled by {} ({})", fillerOf(buffer), guard.full->name);
    if (guard.empty)
      line += fmt::format(", released by {} ({})", leaversOf(guard), guard.empty->name);
    const auto found = hazards.find(buffer.name);
    return found == hazards.end() ? line : line + ": " + found->second.kinds();
  }

  /// The role that writes the buffer and then completes its phases.
  std::string fillerOf(const Buffer &buffer) const {
    std::string filler;
    for (const Role &role : kernel.roles)
      walk(role.body, [&](const Op &op) {
        if (isArrivalAt(op, buffer.guard->full))
          filler = role.name;
      });
    return (buffer.guard->filledBy ? "" : "bulk copies of ") + filler;
  }

  /// "8 warps": who arrives, and as many as a phase takes.
  std::string leaversOf(const Guard &guard) const {
    int64_t count = 0;
    for (const Role &role : kernel.roles)
      forEach<MbarrierInitOp>(role.body, [&](MbarrierInitOp<const Op> init) {
        if (init.bar().buffer == guard.empty)
          count = init.arrivals();
      });
    return fmt::format("{} {}{}", count, toString(guard.leftBy).str(), count == 1 ? "" : "s");
  }

  /// What a barrier or wait is that stands at no guard; nothing for those at guards.
  std::string objectOf(const Op &op) const {
    if (const auto barrier = dynCast<BarrierOp>(op))
      return "barrier  " + membersOf(barrier->scope());
    switch (op.kind) {
    case OpKind::AwaitTurn:
    case OpKind::PassTurn:
      return "turns    of groups";
    case OpKind::MmaWait:
      return "wait     for products";
    case OpKind::BulkWait:
      return "wait     for bulk stores";
    case OpKind::CopyWait:
      return "wait     for copies";
    case OpKind::Wait:
      return bars.contains(WaitOp(op).bar().buffer) ? "" : "wait     for " + WaitOp(op).bar().buffer->name;
    default:
      return "";
    }
  }

  static std::string membersOf(BarrierScope scope) {
    switch (scope) {
    case BarrierScope::Cta:
      return "of the CTA";
    case BarrierScope::Cluster:
      return "of the cluster";
    case BarrierScope::Warp:
      return "of each warp";
    case BarrierScope::Named:
      return "of named warps";
    }
    return "";
  }

  std::vector<std::string> objectLines() const {
    Ordered<std::string, Hazards> objects;
    std::map<unsigned, const LedgerEntry *> entries;
    for (const LedgerEntry &entry : kernel.ledger)
      entries[entry.site] = &entry;
    for (const Role &role : kernel.roles)
      walk(role.body, [&](const Op &op) {
        const std::string object = op.site ? objectOf(op) : "";
        if (object.empty() || !entries.count(op.site))
          return;
        for (Covered covered : coveredBy(*entries[op.site])) {
          if (mbarriers.contains(covered.buffer))
            covered.buffer = "mbarriers";
          objects[object].add(covered);
        }
      });
    Ordered<std::string, std::vector<std::string>> lines; // by the first word
    for (const auto &[object, hazards] : objects) {
      std::vector<std::string> &ofWord = lines[object.substr(0, kWordColumns)];
      const std::string text = object.substr(kWordColumns) + ": " + hazards.text();
      if (ofWord.empty() || ofWord.back().size() + text.size() > kLineColumns)
        ofWord.push_back(object.substr(0, kWordColumns) + text);
      else
        ofWord.back() += "; " + text;
    }
    std::vector<std::string> all;
    for (const auto &[word, ofWord] : lines)
      llvm::append_range(all, ofWord);
    return all;
  }

  const Kernel &kernel;
  llvm::SmallPtrSet<const Buffer *, 8> bars; ///< mbarriers of guards
  llvm::StringSet<> mbarriers;               ///< their names
  llvm::StringMap<Hazards> hazards;          ///< by buffer
};

} // namespace

std::vector<std::string> fagen::ledgerOf(const Kernel &kernel) { return Ledger(kernel).lines(); }

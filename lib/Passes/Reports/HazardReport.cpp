// fagen: reports hazards, and writes the ledger of what covers them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "HazardReport.h"

#include "fagen/IR/OpClasses.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace fagen;
using namespace fagen::ir;

std::string fagen::textOf(const Op &op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(op, os);
  return llvm::StringRef(text).split('\n').first.trim().str();
}

namespace {

llvm::StringRef barrierKind(Scope scope) {
  return scope == Scope::Warp ? "warp or CTA barrier" : scope == Scope::Group ? "named or CTA barrier" : "CTA barrier";
}

} // namespace

void HazardReport::error(const Location &location, const llvm::Twine &message) const {
  if (internal.empty())
    diags.error(location, message);
  else
    diags.internalError(internal, message, location);
}

bool HazardReport::reportUnmendable(const Kernel &kernel) const {
  bool isSound = info.problem().empty();
  if (!isSound)
    error(kernel.location, info.problem());
  for (const Access &access : info.selfConflicts()) {
    error(access.op->location,
          "threads meet on the same bytes of " + access.buffer->name + " within " + info.points().nameOf(access.op));
    isSound = false;
  }
  for (const Hazard &hazard : info.hazards())
    if (hazard.isUnfinished) {
      reportOpen(hazard);
      isSound = false;
    }
  return isSound;
}

std::string HazardReport::messageOf(const Hazard &hazard) const {
  const std::string source = info.points().nameOf(hazard.source.op), sink = info.points().nameOf(hazard.sink.op);
  const std::string &steps = info.openSteps(hazard);
  std::string message = toString(hazard.kind).str() + " hazard on " + hazard.source.buffer->name;
  if (hazard.sink.buffer != hazard.source.buffer)
    message += " and " + hazard.sink.buffer->name + ", which share bytes";
  message += hazard.isUnfinished
                 ? ": no copy_wait completes " + source + " before " + sink
                 : ": no " + barrierKind(hazard.conflict.scope).str() + " between " + source + " and " + sink;
  return steps.empty() ? message : message + " when " + steps;
}

void HazardReport::noteAccesses(const Hazard &hazard) const {
  diags.note(hazard.source.op->location, "first: " + textOf(*hazard.source.op));
  diags.note(hazard.sink.op->location, "then: " + textOf(*hazard.sink.op));
}

void HazardReport::reportOpen(const Hazard &hazard) const {
  error(hazard.sink.op->location, messageOf(hazard));
  noteAccesses(hazard);
}

void HazardReport::reportPlaces(llvm::ArrayRef<const Hazard *> open, const Location &place) const {
  const std::string count = open.size() == 1 ? "a hazard" : std::to_string(open.size()) + " hazards";
  error(place, "these places leave " + count + " open: " + messageOf(*open.front()));
  noteAccesses(*open.front());
  diags.note(place, "barriers = minimal covers every hazard with the fewest barriers");
}

/// all.store@9, or let seen
static std::string nameOf(const GlobalAccess &access) {
  return access.let ? "let " + access.let->name : access.role->name + "." + Points(*access.role).nameOf(access.op);
}

bool fagen::reportGlobal(const Program &program, const Kernel &kernel, Diagnostics &diags, llvm::StringRef internal) {
  bool isSound = true;
  for (const GlobalHazard &hazard : findGlobalHazards(program, kernel)) {
    if (hazard.isOrdered())
      continue;
    isSound = false;
    const std::string message = toString(hazard.kind).str() + " hazard on " + hazard.first.buffer->name + ": " +
                                nameOf(hazard.first) + " and " + nameOf(hazard.second) +
                                " of CTAs of one launch may reach the same rows, and nothing orders these CTAs; what "
                                "one CTA hands another needs a launch between";
    const Location location = hazard.second.op ? hazard.second.op->location : kernel.location;
    if (internal.empty())
      diags.error(location, message);
    else
      diags.internalError(internal, message, location);
    for (const auto &[when, access] : {std::pair("first: ", hazard.first), {"then: ", hazard.second}})
      if (access.op)
        diags.note(access.op->location, when + textOf(*access.op));
  }
  return isSound;
}

void fagen::printGlobal(const Program &program, const Kernel &kernel, llvm::raw_ostream &os) {
  const std::vector<GlobalHazard> hazards = findGlobalHazards(program, kernel);
  if (hazards.empty())
    return;
  os << "global memory of @" << kernel.symbol << ", launch " << hazards.front().second.launch + 1 << " of "
     << program.kernels.size() << ":\n";
  for (const GlobalHazard &hazard : hazards) {
    os << "  " << toString(hazard.kind) << ' ' << hazard.first.buffer->name << ": ";
    if (hazard.isOrdered() && !hazard.isCounted)
      os << "launch " << hazard.first.launch + 1 << ' ';
    os << nameOf(hazard.first) << " -> " << nameOf(hazard.second)
       << (hazard.isCounted     ? ", ordered by the count of splits"
           : hazard.isOrdered() ? ", ordered by the launch"
                                : ", open: CTAs of one launch run in any order")
       << '\n';
  }
}

namespace {

/// Sentences, each once, in the order in which they were first added.
class Sentences {
public:
  void add(std::string text) {
    if (!llvm::is_contained(texts, text))
      texts.push_back(std::move(text));
  }
  bool empty() const { return texts.empty(); }
  std::string join() const { return llvm::join(texts, "; "); }

private:
  std::vector<std::string> texts;
};

/// The hazards that would be open without the barrier.
std::string coveredBy(const HazardInfo &info, const Op &barrier) {
  Sentences titles;
  for (const Hazard &hazard : info.hazards())
    if (info.isCovered(hazard) && !info.isCovered(hazard, &barrier))
      titles.add(hazard.title());
  return titles.empty() ? "nothing that other barriers do not cover" : titles.join();
}

/// The copies that the wait completes, by who reads them; by who meets their bytes otherwise if nobody does.
std::string completedBy(const HazardInfo &info, const Op &wait) {
  Sentences reads, others;
  for (const Hazard &hazard : info.hazards())
    if (llvm::is_contained(hazard.waits, &wait))
      (hazard.kind == HazardKind::Raw && hazard.source.buffer == hazard.sink.buffer ? reads : others)
          .add(hazard.title());
  const Sentences &titles = reads.empty() ? others : reads;
  return titles.empty() ? "nothing that is used" : titles.join();
}

std::string nameOf(const Op &op) {
  if (const auto barrier = dynCast<BarrierOp>(op))
    return toString(barrier->scope()).str() + " barrier";
  return "copy_wait " + std::to_string(CopyWaitOp(op).pending());
}

} // namespace

std::vector<std::string> fagen::coversOfRole(const Role &role, const HazardInfo &info) {
  std::vector<std::string> covers;
  walk(role.body, [&](const Op &op) {
    if (opInfo(op.kind).hasSite)
      covers.push_back(op.kind == OpKind::Barrier ? coveredBy(info, op) : completedBy(info, op));
  });
  return covers;
}

bool fagen::areCovered(const HazardInfo &info) {
  return info.problem().empty() && info.selfConflicts().empty() &&
         llvm::all_of(info.hazards(), [&](const Hazard &hazard) { return info.isCovered(hazard); });
}

void fagen::fillLedgerOfRole(Kernel &kernel, llvm::ArrayRef<std::string> covers) {
  kernel.ledger.clear();
  unsigned site = 0;
  walk(kernel.roles.front().body, [&](Op &op) {
    if (!opInfo(op.kind).hasSite)
      return;
    op.site = ++site;
    kernel.ledger.push_back({site, nameOf(op), covers[site - 1]});
    if (op.kind == OpKind::Barrier)
      op.note = "place-barriers: " + covers[site - 1];
  });
}

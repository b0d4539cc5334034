// fagen: reports what the roles of a kernel leave unordered, and writes the ledger of what orders them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "OrderReport.h"

#include "HazardReport.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace fagen;
using namespace fagen::ir;

static std::string when(const std::string &steps) { return steps.empty() ? "" : " when " + steps; }

bool fagen::reportOrder(const Kernel &kernel, const OrderInfo &info, Diagnostics &diags, llvm::StringRef internal) {
  if (info.isTooLong() && !internal.empty()) { // the schedule asks for it
    diags.error(kernel.location, "the barriers of @" + kernel.symbol + " cannot be proved: " + info.problem() +
                                     "; fewer stages or more keys a tile make them fewer");
    return false;
  }
  bool isSound = true;
  auto error = [&](const Location &location, const llvm::Twine &message) {
    isSound = false;
    if (internal.empty())
      diags.error(location, message);
    else
      diags.internalError(internal, message, location);
  };
  if (!info.problem().empty())
    error(kernel.location, info.problem());
  for (const Access &access : info.selfConflicts())
    error(access.op->location,
          "threads meet on the same bytes of " + access.buffer->name + " within " + info.nameOf(access.op));
  for (const OrderDefect &defect : info.defects())
    error(defect.op->location, info.nameOf(defect.op) + ": " + defect.message + when(defect.steps));
  for (const OrderedPair &pair : info.pairs()) {
    if (pair.open.empty())
      continue;
    error(pair.sink.op->location, toString(pair.kind).str() + " hazard on " + pair.source.buffer->name + ": " +
                                      info.nameOf(pair.source.op) + " and " + info.nameOf(pair.sink.op) + ": " +
                                      pair.open + when(pair.steps));
    diags.note(pair.source.op->location, "first: " + textOf(*pair.source.op));
    diags.note(pair.sink.op->location, "then: " + textOf(*pair.sink.op));
  }
  return isSound;
}

void fagen::printOrder(const Kernel &kernel, const OrderInfo &info, llvm::raw_ostream &os) {
  auto names = llvm::map_range(kernel.roles, [](const Role &role) { return role.name; });
  os << "hazards of @" << kernel.symbol << ", roles " << llvm::join(names, ", ") << ":\n";
  if (!info.problem().empty())
    os << "  not analysed: " << info.problem() << '\n';
  for (const Access &access : info.selfConflicts())
    os << "  " << info.nameOf(access.op) << " races with itself on " << access.buffer->name << '\n';
  for (const OrderDefect &defect : info.defects())
    os << "  " << info.nameOf(defect.op) << ": " << defect.message << when(defect.steps) << '\n';
  for (const OrderedPair &pair : info.pairs())
    os << "  " << info.describe(pair) << '\n';
}

/// The pairs that the op takes part in ordering.
static std::string titlesOf(const OrderInfo &info, const Op &op) {
  std::vector<std::string> titles;
  for (const OrderedPair *pair : info.orderedBy(op))
    titles.push_back(toString(pair->kind).str() + " " + pair->source.buffer->name + ": " +
                     info.nameOf(pair->source.op) + " -> " + info.nameOf(pair->sink.op));
  return llvm::join(titles, "; ");
}

std::vector<std::string> fagen::coversOf(const Kernel &kernel, const OrderInfo &info) {
  std::vector<std::string> covers;
  for (const Role &role : kernel.roles)
    walk(role.body, [&](const Op &op) {
      if (opInfo(op.kind).hasSite)
        covers.push_back(titlesOf(info, op));
    });
  return covers;
}

void fagen::fillLedger(Kernel &kernel, llvm::ArrayRef<std::string> covers) {
  kernel.ledger.clear();
  unsigned site = 0;
  for (Role &role : kernel.roles)
    walk(role.body, [&](Op &op) {
      if (!opInfo(op.kind).hasSite)
        return;
      op.site = ++site;
      kernel.ledger.push_back({site, opInfo(op.kind).name.str(), covers[site - 1]});
    });
}

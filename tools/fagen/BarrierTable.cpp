// fagen: --emit=barriers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "BarrierTable.h"

#include "fagen/Analysis/Hazards.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace fagen {

namespace {

/// One hazard that a site takes part in covering.
struct Entry {
  const ir::Op *site;
  bool isNeeded; ///< the hazard is open without the site
  const Hazard *hazard;
  SmallVector<const ir::Op *, 2> partners;
};

/// Sites and hazards of one role.
class RoleBarriers {
public:
  RoleBarriers(const ir::Kernel &kernel, const ir::Role &role, const StringMap<unsigned> &lines)
      : role(role), info(kernel, role), lines(lines) {
    ir::walk(role.body, [&](const ir::Op &op) {
      if (!ir::opInfo(op.kind).hasSite)
        return;
      sites.push_back(&op);
      for (const Hazard &hazard : info.hazards())
        if (op.kind == ir::OpKind::CopyWait)
          addWait(op, hazard);
        else
          addBarrier(op, hazard);
    });
  }

  void print(raw_ostream &os) const {
    std::vector<std::vector<std::string>> rows{
        {"site", "line", "barrier", "", "hazard", "first", "then", "distance", "threads", "partners"}};
    for (const ir::Op *site : sites) {
      const std::vector<std::string> head{std::to_string(site->site), std::to_string(lineOf(site)),
                                          describe(*site) + (placeOf(*site).empty() ? "" : " " + placeOf(*site).str())};
      bool isFirst = true;
      for (const Entry &entry : entries)
        if (entry.site == site) {
          rows.push_back(isFirst ? head : std::vector<std::string>(head.size()));
          append_range(rows.back(), columnsOf(entry));
          isFirst = false;
        }
      if (isFirst) {
        rows.push_back(head);
        append_range(rows.back(), std::vector<std::string>{"redundant", "covers nothing"});
      }
    }
    printColumns(rows, os);
  }

  json::Array json() const {
    json::Array result;
    for (const ir::Op *site : sites) {
      json::Array hazards;
      for (const Entry &entry : entries)
        if (entry.site == site)
          hazards.push_back(jsonOf(entry));
      json::Object object{{"site", site->site},
                          {"line", lineOf(site)},
                          {"barrier", describe(*site)},
                          {"op", info.points().nameOf(site)},
                          {"role", role.name},
                          {"needed", isNeeded(site)},
                          {"hazards", std::move(hazards)}};
      if (!placeOf(*site).empty())
        object["place"] = placeOf(*site);
      if (site->location.isKnown())
        object["spec"] = site->location.str();
      result.push_back(std::move(object));
    }
    return result;
  }

  size_t siteCount() const { return sites.size(); }
  size_t neededCount() const {
    return count_if(sites, [this](const ir::Op *site) { return isNeeded(site); });
  }

private:
  bool isNeeded(const ir::Op *site) const {
    return any_of(entries, [&](const Entry &entry) { return entry.site == site && entry.isNeeded; });
  }

  void addWait(const ir::Op &wait, const Hazard &hazard) {
    if (!is_contained(hazard.waits, &wait))
      return;
    entries.push_back({&wait, true, &hazard, barriersOn(hazard)});
  }

  void addBarrier(const ir::Op &barrier, const Hazard &hazard) {
    SmallVector<const ir::Op *, 2> barriers = barriersOn(hazard);
    if (!is_contained(barriers, &barrier))
      return;
    Entry entry{&barrier, !info.isCovered(hazard, &barrier), &hazard, hazard.waits};
    for (const ir::Op *other : barriers)
      if (other != &barrier)
        entry.partners.push_back(other);
    entries.push_back(std::move(entry));
  }

  /// All barriers that order the hazard on some path.
  SmallVector<const ir::Op *, 2> barriersOn(const Hazard &hazard) const {
    SmallVector<const ir::Op *, 2> barriers;
    if (hazard.conflict.scope != Scope::Thread)
      for (const Path &path : hazard.paths)
        for (const ir::Op *barrier : info.covering(hazard, path))
          if (!is_contained(barriers, barrier))
            barriers.push_back(barrier);
    return barriers;
  }

  unsigned lineOf(const ir::Op *op) const { return lines.lookup(info.points().nameOf(op)); }

  static std::string describe(const ir::Op &op) {
    if (op.kind == ir::OpKind::CopyWait)
      return "copy_wait " + std::to_string(op.integer("pending"));
    return op.text("scope").str() + " barrier";
  }

  /// Of a barrier that a place of the policy asked for: its name; else a hazard did.
  static StringRef placeOf(const ir::Op &op) { return op.has("place") ? op.text("place") : ""; }

  static std::string bufferOf(const Hazard &hazard) {
    const std::string first = hazard.source.buffer->name;
    return hazard.sink.buffer == hazard.source.buffer ? first : first + "/" + hazard.sink.buffer->name;
  }

  std::string nameWithLine(const ir::Op *op) const {
    return info.points().nameOf(op) + ":" + std::to_string(lineOf(op));
  }

  std::vector<std::string> columnsOf(const Entry &entry) const {
    const Hazard &hazard = *entry.hazard;
    std::vector<std::string> partners;
    for (const ir::Op *partner : entry.partners)
      partners.push_back("site " + std::to_string(partner->site));
    return {entry.isNeeded ? "needed" : "redundant",
            toString(hazard.kind).str() + " " + bufferOf(hazard),
            nameWithLine(hazard.source.op),
            nameWithLine(hazard.sink.op),
            hazard.distance ? std::to_string(*hazard.distance) : "",
            toString(hazard.conflict.scope).str(),
            join(partners, ", ")};
  }

  json::Object accessJson(const Access &access) const {
    json::Object object{{"op", info.points().nameOf(access.op)}, {"line", lineOf(access.op)}};
    if (access.op->location.isKnown())
      object["spec"] = access.op->location.str();
    return object;
  }

  json::Object jsonOf(const Entry &entry) const {
    const Hazard &hazard = *entry.hazard;
    json::Array partners;
    for (const ir::Op *partner : entry.partners)
      partners.push_back(partner->site);
    json::Object object{{"kind", toString(hazard.kind)},
                        {"buffer", bufferOf(hazard)},
                        {"first", accessJson(hazard.source)},
                        {"then", accessJson(hazard.sink)},
                        {"threads", toString(hazard.conflict.scope)},
                        {"needed", entry.isNeeded},
                        {"partners", std::move(partners)}};
    if (hazard.distance)
      object["distance"] = *hazard.distance;
    return object;
  }

  /// Left-aligned columns, two blanks apart.
  static void printColumns(ArrayRef<std::vector<std::string>> rows, raw_ostream &os) {
    std::vector<size_t> widths;
    for (const std::vector<std::string> &row : rows) {
      widths.resize(std::max(widths.size(), row.size()));
      for (auto [width, cell] : zip(widths, row))
        width = std::max(width, cell.size());
    }
    for (const std::vector<std::string> &row : rows) {
      std::string line;
      for (auto [width, cell] : zip(widths, row))
        line += "  " + cell + std::string(width - cell.size(), ' ');
      os << StringRef(line).rtrim() << '\n';
    }
  }

  const ir::Role &role;
  const HazardInfo info;
  const StringMap<unsigned> &lines;
  std::vector<const ir::Op *> sites;
  std::vector<Entry> entries;
};

/// One kernel of a launch.
void emitKernel(const PlannedVariant &source, const ir::Kernel &kernel, const LaunchPlan &launch, raw_ostream &os,
                json::Array *kernels) {
  StringMap<unsigned> lines;
  for (const OpPlan &op : launch.ops)
    lines[op.op] = op.line;
  json::Array sites;
  for (const ir::Role &role : kernel.roles) {
    const RoleBarriers barriers(kernel, role, lines);
    if (kernels) {
      for (json::Value &site : barriers.json())
        sites.push_back(std::move(site));
      continue;
    }
    os << source.variant->variant->name << " " << kernel.target << ", role " << role.name
       << ", barriers = " << toString(source.variant->variant->schedule.barriers) << ": " << barriers.siteCount()
       << " sites, " << barriers.neededCount() << " needed\n";
    barriers.print(os);
    os << '\n';
  }
  if (kernels)
    kernels->push_back(json::Object{{"variant", source.variant->variant->name},
                                    {"policy", toString(source.variant->variant->schedule.barriers)},
                                    {"symbol", launch.symbol},
                                    {"file", source.plan->sourcePath},
                                    {"sites", std::move(sites)}});
}

} // namespace

std::string emitBarriers(ArrayRef<PlannedVariant> variants, bool asJson) {
  std::string text;
  raw_string_ostream os(text);
  json::Array kernels;
  for (const PlannedVariant &source : variants)
    for (const auto &[kernel, launch] : zip(source.variant->program->kernels, source.plan->launches))
      emitKernel(source, *kernel, launch, os, asJson ? &kernels : nullptr);
  if (asJson)
    return formatv("{0:2}\n", json::Value(json::Object{{"kernels", std::move(kernels)}})).str();
  return text;
}

} // namespace fagen

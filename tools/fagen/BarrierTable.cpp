// fagen: --emit=barriers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "BarrierTable.h"

#include "BarrierSites.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace fagen {

/// Of a barrier that a place of the policy asked for: its name; else a hazard did.
static StringRef placeOf(const ir::Op &op) { return op.has(ir::Attr::Place) ? op.text(ir::Attr::Place) : ""; }

static bool isNeeded(const BarrierSite &site) {
  return any_of(site.hazards, [](const CoveredHazard &hazard) { return hazard.part == Part::Needed; });
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

namespace {

/// Writes the sites of one kernel.
class SiteWriter {
public:
  SiteWriter(const ir::Kernel &kernel, const LaunchPlan &launch) {
    for (const ir::Role &role : kernel.roles) {
      const Points points(role);
      const std::string prefix = kernel.roles.size() == 1 ? "" : role.name + ".";
      ir::walk(role.body, [&](const ir::Op &op) { names[&op] = prefix + points.nameOf(&op); });
    }
    for (const OpPlan &op : launch.ops)
      lines[op.op] = op.line;
  }

  void print(const RoleSites &role, raw_ostream &os) const {
    std::vector<std::vector<std::string>> rows{
        {"site", "line", "barrier", "", "hazard", "first", "then", "distance", "threads", "partners"}};
    for (const BarrierSite &site : role.sites) {
      const StringRef place = placeOf(*site.op);
      rows.push_back({std::to_string(site.op->site), std::to_string(lineOf(site.op)),
                      site.what + (place.empty() ? "" : " " + place.str())});
      const size_t headSize = rows.back().size();
      for (const CoveredHazard &hazard : site.hazards) {
        if (&hazard != &site.hazards.front())
          rows.emplace_back(headSize);
        append_range(rows.back(), columnsOf(hazard));
      }
      if (site.hazards.empty())
        append_range(rows.back(), role.isOrdered ? std::vector<std::string>{"middle", "of others' chains"}
                                                 : std::vector<std::string>{"redundant", "covers nothing"});
    }
    printColumns(rows, os);
  }

  json::Object jsonOf(const RoleSites &role, const BarrierSite &site) const {
    json::Array hazards;
    for (const CoveredHazard &hazard : site.hazards)
      hazards.push_back(jsonOf(role, site, hazard));
    json::Object object{{"site", site.op->site},
                        {"line", lineOf(site.op)},
                        {"barrier", site.what},
                        {"op", names.lookup(site.op)},
                        {"role", role.role},
                        {"needed", role.isOrdered ? json::Value(nullptr) : json::Value(isNeeded(site))},
                        {"hazards", std::move(hazards)}};
    if (!placeOf(*site.op).empty())
      object["place"] = placeOf(*site.op);
    if (site.op->location.isKnown())
      object["spec"] = site.op->location.str();
    return object;
  }

private:
  unsigned lineOf(const ir::Op *op) const { return lines.lookup(names.lookup(op)); }

  std::string nameWithLine(const ir::Op *op) const { return names.lookup(op) + ":" + std::to_string(lineOf(op)); }

  std::vector<std::string> columnsOf(const CoveredHazard &hazard) const {
    std::vector<std::string> partners;
    for (const ir::Op *partner : hazard.partners)
      partners.push_back(partner->site ? "site " + std::to_string(partner->site) : nameWithLine(partner));
    return {toString(hazard.part).str(),
            toString(hazard.kind).str() + " " + hazard.buffer,
            nameWithLine(hazard.first),
            nameWithLine(hazard.then),
            hazard.distance ? std::to_string(*hazard.distance) : "",
            hazard.threads,
            join(partners, ", ")};
  }

  json::Object jsonOf(const ir::Op &op) const {
    json::Object object{{"op", names.lookup(&op)}, {"line", lineOf(&op)}};
    if (op.location.isKnown())
      object["spec"] = op.location.str();
    return object;
  }

  json::Object jsonOf(const RoleSites &role, const BarrierSite &site, const CoveredHazard &hazard) const {
    json::Array partners;
    for (const ir::Op *partner : hazard.partners)
      if (partner->site)
        partners.push_back(partner->site);
    json::Object object{{"kind", toString(hazard.kind)},  {"buffer", hazard.buffer},
                        {"first", jsonOf(*hazard.first)}, {"then", jsonOf(*hazard.then)},
                        {"threads", hazard.threads},      {"needed", hazard.part == Part::Needed},
                        {"partners", std::move(partners)}};
    if (hazard.distance)
      object["distance"] = *hazard.distance;
    if (role.isOrdered) {
      const ir::Op &other = hazard.partners.empty() ? *site.op : *hazard.partners.front();
      object["needed"] = nullptr;
      object["release"] = jsonOf(hazard.part == Part::Last ? other : *site.op);
      object["acquire"] = jsonOf(hazard.part == Part::First ? other : *site.op);
    }
    return object;
  }

  DenseMap<const ir::Op *, std::string> names; ///< as the manifest has them
  StringMap<unsigned> lines;
};

} // namespace

/// "l4_fp16_... sm_89, role all, barriers = minimal: 7 sites, 7 needed"
static void printTitle(const PlannedVariant &source, const ir::Kernel &kernel, const RoleSites &role, raw_ostream &os) {
  const Variant &variant = *source.variant->variant;
  os << variant.name << " " << kernel.target << ", role " << role.role;
  if (role.isOrdered)
    os << ": " << role.sites.size() << " sites, "
       << count_if(role.sites, [](const BarrierSite &site) { return site.hazards.empty(); })
       << " in the middle of others' chains\n";
  else
    os << ", barriers = " << toString(variant.schedule.barriers) << ": " << role.sites.size() << " sites, "
       << count_if(role.sites, isNeeded) << " needed\n";
}

/// One kernel of a launch.
static void emitKernel(const PlannedVariant &source, const ir::Kernel &kernel, const LaunchPlan &launch,
                       raw_ostream &os, json::Array *kernels) {
  const SiteWriter writer(kernel, launch);
  json::Array sites;
  for (const RoleSites &role : findSites(kernel)) {
    if (kernels) {
      for (const BarrierSite &site : role.sites)
        sites.push_back(writer.jsonOf(role, site));
      continue;
    }
    printTitle(source, kernel, role, os);
    writer.print(role, os);
    os << '\n';
  }
  if (kernels)
    kernels->push_back(json::Object{{"variant", source.variant->variant->name},
                                    {"policy", toString(source.variant->variant->schedule.barriers)},
                                    {"symbol", launch.symbol},
                                    {"file", source.plan->sourcePath},
                                    {"sites", std::move(sites)}});
}

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

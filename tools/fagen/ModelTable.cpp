// fagen: the model's predictions as a table, and as JSON.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ModelTable.h"

#include "fagen/Target/GpuNames.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

#include "fmt/format.h"

using namespace llvm;

namespace fagen {

namespace {

struct Row {
  const CompiledVariant &compiled;
  const GpuRates &gpu;
  const model::Shape &shape;
  std::optional<model::Prediction> prediction;
};

} // namespace

static void print(const Row &row, raw_ostream &os) {
  os << fmt::format("{} at {} on sm_{} ({} of {} SMs at {} GHz)\n", row.compiled.variant->name, row.shape.str(),
                    row.gpu.sm, row.gpu.name, row.gpu.sms, row.gpu.clockMhz / 1e3);
  if (!row.prediction) {
    os << "  not modelled: only products whose results stay in registers, what fits, and at most 2^24 tiles\n\n";
    return;
  }
  const model::Prediction &p = *row.prediction;
  os << fmt::format("  {} registers, {} B shared, {} CTAs an SM (limited by {})\n", p.registers, p.sharedBytes,
                    p.ctasPerSm, p.occupancyLimit);
  os << fmt::format("  {} CTAs: {:.2f} waves, the last {:.0f} % full; {} resident an SM\n", p.ctas, p.waves,
                    100 * p.tail, p.resident);
  os << fmt::format("  {:<10} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>8} {:>9}  {}\n", "clocks", "steps", "tensor",
                    "exp", "fp32", "shared", "copy", "latency", "together", "limit");
  for (const model::Section &s : p.sections)
    os << fmt::format("  {:<10} {:>7.1f} {:>7.0f} {:>7.0f} {:>7.0f} {:>7.0f} {:>7.0f} {:>8.0f} {:>9.0f}  {}\n", s.name,
                      s.steps, s.clocks.tensor + s.clocks.products, s.clocks.exp, s.clocks.fp32, s.clocks.shared,
                      s.clocks.copy + s.clocks.bulk, s.clocks.latency, s.together, s.clocks.limit());
  os << fmt::format("  at least {:.1f} us for DRAM; {:.1f} us predicted\n\n", p.dramMicroseconds, p.microseconds);
}

static json::Value jsonOf(const model::Section &s) {
  return json::Object{{"name", s.name},
                      {"steps", s.steps},
                      {"tensor", s.clocks.tensor},
                      {"exp", s.clocks.exp},
                      {"fp32", s.clocks.fp32},
                      {"shared", s.clocks.shared},
                      {"copy", s.clocks.copy},
                      {"products", s.clocks.products},
                      {"bulk", s.clocks.bulk},
                      {"latency", s.clocks.latency},
                      {"barriers", s.work.barriers},
                      {"load_rounds", s.work.loadRounds},
                      {"together", s.together},
                      {"limit", s.clocks.limit()},
                      {"copied_bytes", s.work.copiedBytes},
                      {"stored_bytes", s.work.storedBytes}};
}

static json::Value jsonOf(const Row &row) {
  json::Object object{
      {"variant", row.compiled.variant->name}, {"shape", row.shape.str()}, {"sm", row.gpu.sm}, {"gpu", row.gpu.name}};
  if (!row.prediction)
    return object;
  const model::Prediction &p = *row.prediction;
  json::Array sections;
  for (const model::Section &section : p.sections)
    sections.push_back(jsonOf(section));
  object["registers"] = p.registers;
  object["shared_bytes"] = p.sharedBytes;
  object["ctas_per_sm"] = p.ctasPerSm;
  object["limit"] = p.occupancyLimit;
  object["ctas"] = p.ctas;
  object["waves"] = p.waves;
  object["tail"] = p.tail;
  object["sections"] = std::move(sections);
  object["dram_us"] = p.dramMicroseconds;
  object["us"] = p.microseconds;
  const bool isCausal = row.compiled.variant->problem.mask == Mask::Causal;
  const model::Ranking ranking = model::rankingOf(row.gpu, isCausal);
  object["mask"] = isCausal ? "causal" : "none";
  object["rank_correlation"] = ranking.correlation;
  object["ranked_variants"] = ranking.variants;
  object["may_prune"] = ranking.mayPrune();
  if (ranking.mayPrune())
    object["prune_over"] = model::kPruneOver;
  return object;
}

/// Without blanks, in lower case.
static const TargetInfo *targetOf(unsigned sm) { return lookupTarget(("sm_" + Twine(sm)).str()); }

const GpuRates *findGpu(StringRef targetOrName) {
  if (const TargetInfo *target = lookupTarget(targetOrName))
    return ratesOf(target->sm);
  for (const GpuRates &gpu : kGpuRates)
    if (plainGpuName(gpu.name) == plainGpuName(targetOrName))
      return &gpu;
  return nullptr;
}

std::string emitModel(ArrayRef<const CompiledVariant *> variants, ArrayRef<model::Shape> shapes, const GpuRates *asked,
                      bool asJson) {
  std::string text;
  raw_string_ostream os(text);
  json::Array rows;
  for (const CompiledVariant *compiled : variants)
    for (const model::Shape &shape : shapes) {
      const Problem &problem = compiled->variant->problem;
      if (problem.headDimQK != shape.headDim || problem.headDimV != shape.headDim)
        continue;
      const TargetInfo *target = asked ? targetOf(asked->sm) : compiled->variant->target;
      const GpuRates *gpu = asked ? asked : ratesOf(target->sm);
      if (!gpu)
        continue;
      const Row row{*compiled, *gpu, shape, model::predict(*compiled->program->kernels.front(), *gpu, *target, shape)};
      if (asJson)
        rows.push_back(jsonOf(row));
      else
        print(row, os);
    }
  if (asJson)
    os << formatv("{0:2}", json::Value(std::move(rows))) << '\n';
  return text;
}

} // namespace fagen

// fagen: --emit=mutants.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Mutants.h"

#include "fagen/Analysis/Mutants.h"
#include "fagen/Analysis/Timeline.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/ThreadPool.h"

using namespace llvm;

namespace fagen {

/// "barrier cta", "copy_wait 2".
static std::string describe(const ir::Op &op) {
  std::string text = ir::opInfo(op.kind).name.str();
  if (op.has(ir::Attr::Scope))
    text += " " + op.text(ir::Attr::Scope).str();
  if (op.has(ir::Attr::Pending))
    text += " " + std::to_string(op.integer(ir::Attr::Pending));
  return text;
}

static StringRef nameOf(Mutant::Action action) {
  static constexpr StringLiteral names[] = {"disable", "weaken", "move"};
  return names[unsigned(action)];
}

namespace {

/// Writes the mutants of one kernel.
class MutantWriter {
public:
  MutantWriter(const ir::Kernel &kernel, const LaunchPlan &launch) {
    for (const ir::Role &role : kernel.roles)
      points.emplace_back(role);
    for (const auto &[role, numbering] : zip(kernel.roles, points))
      ir::walk(role.body, [&, &numbering = numbering](const ir::Op &op) { names[&op] = numbering.nameOf(&op); });
    for (const OpPlan &op : launch.ops)
      lines[op.op] = op.line;
  }

  json::Value jsonOf(const Mutant &mutant) const {
    const ir::Op &op = *mutant.op;
    json::Object object{{"site", op.site},
                        {"line", lineOf(op)},
                        {"what", describe(op)},
                        {"op", names.lookup(&op)},
                        {"action", nameOf(mutant.action)},
                        {"verdict", mutant.isNeeded ? "needed" : "redundant"}};
    if (op.location.isKnown())
      object["spec"] = op.location.str();
    if (mutant.isNeeded)
      object["why"] = mutant.why;
    if (mutant.action == Mutant::Action::Weaken && op.kind == ir::OpKind::CopyWait)
      object["pending"] = mutant.pending;
    if (mutant.over) {
      object["over"] = names.lookup(mutant.over);
      object["target"] = lineOf(*mutant.over);
      object["later"] = mutant.isLater;
    }
    return object;
  }

private:
  unsigned lineOf(const ir::Op &op) const { return lines.lookup(names.lookup(&op)); }

  std::vector<Points> points;
  DenseMap<const ir::Op *, std::string> names;
  StringMap<unsigned> lines;
};

} // namespace

static json::Array mutantsOf(const PlannedVariant &source) {
  json::Array kernels;
  for (const auto &[kernel, launch] : zip(source.variant->program->kernels, source.plan->launches)) {
    const MutantWriter writer(*kernel, launch);
    json::Array mutants;
    for (const Mutant &mutant : judgeMutants(*kernel))
      mutants.push_back(writer.jsonOf(mutant));
    kernels.push_back(json::Object{{"variant", source.variant->variant->name},
                                   {"policy", toString(source.variant->variant->schedule.barriers)},
                                   {"symbol", launch.symbol},
                                   {"file", source.plan->sourcePath},
                                   {"mutants", std::move(mutants)}});
  }
  return kernels;
}

std::string emitMutants(ArrayRef<PlannedVariant> sources) {
  std::vector<json::Array> parts(sources.size());
  DefaultThreadPool pool;
  for (size_t i = 0; i != sources.size(); ++i)
    pool.async([&, i] { parts[i] = mutantsOf(sources[i]); });
  pool.wait();
  json::Array kernels;
  for (json::Array &part : parts)
    for (json::Value &kernel : part)
      kernels.push_back(std::move(kernel));
  return formatv("{0:2}\n", json::Value(json::Object{{"kernels", std::move(kernels)}})).str();
}

} // namespace fagen

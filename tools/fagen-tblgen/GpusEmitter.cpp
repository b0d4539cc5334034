// fagen: writes include/fagen/Target/Gpus.h: the rates of GPUs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The file is checked in, since the laboratory is built without a compiler, too; test/TableGen proves it fresh.

#include "EmitterSupport.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/TableGen/Error.h"
#include "llvm/TableGen/TableGenBackend.h"

using namespace llvm;

namespace fagen::tblgen::gpusEmitter {
namespace {

struct Field {
  const char *member, *value, *doc;
};
constexpr Field kFields[] = {{"sm", "Sm", "compute capability, 10 * major + minor"},
                             {"sms", "Sms", "multiprocessors that are enabled"},
                             {"clockMhz", "ClockMhz", "of an SM under load"},
                             {"tensorFlops", "TensorFlops", "of an SM and clock, by its fastest instruction"},
                             {"mmaSyncFlops", "MmaSyncFlops", "by mma.sync, sums in f32"},
                             {"mmaSyncF16Flops", "MmaSyncF16Flops", "by mma.sync, sums in f16"},
                             {"exps", "Exps", "special functions of an SM and clock"},
                             {"fp32", "Fp32", "operations of an SM and clock"},
                             {"halfRate", "HalfRate", "maxima and conversions of an SM and clock"},
                             {"sharedBytes", "SharedBytes", "of an SM and clock"},
                             {"dramGBs", "DramGBs", "of the GPU, 1e9 bytes a second"}};

/// What not every GPU has, and what measurements say of the time model; 0: no such engine, nothing was measured.
constexpr Field kRecords[] = {
    {"bulkBytes", "BulkBytes", "of an SM and clock, from the L2 by the copy engine; 0: there is none"},
    {"bulkLatency", "BulkLatency", "clocks from asking the copy engine to its first bytes"},
    {"unmaskedRank", "UnmaskedRank", "least rank correlation at a shape, percent"},
    {"unmaskedVariants", "UnmaskedVariants", "over so many variants"},
    {"causalRank", "CausalRank", "the same with a causal mask"},
    {"causalVariants", "CausalVariants", "over so many variants"}};

/// An operation takes time, so no rate is zero.
void validate(const Record &gpu) {
  for (const Field &field : kFields)
    if (gpu.getValueAsInt(field.value) <= 0)
      PrintFatalError(gpu.getLoc(), "GPU '" + gpu.getValueAsString("Name") + "' has no " + field.value);
}

void emitGpus(RecordKeeper &records, raw_ostream &os) {
  std::vector<Record *> gpus = recordsInOrder(records, "Gpu");
  for (const Record *gpu : gpus)
    validate(*gpu);
  emitFileHeader(os, "rates of the GPUs that times are predicted for.", "Targets.td");
  os << "#pragma once\n\nnamespace fagen {\n\nstruct GpuRates {\n  const char *name;\n";
  for (const Field &field : concat<const Field>(kFields, kRecords))
    os << "  /// " << field.doc << "\n  unsigned " << field.member << ";\n";
  os << "};\n\n/// The first of a compute capability stands for it.\nconstexpr GpuRates kGpuRates[] = {\n";
  for (const Record *gpu : gpus) {
    os << "    {" << quoted(gpu->getValueAsString("Name"));
    for (const Field &field : concat<const Field>(kFields, kRecords))
      os << ", " << gpu->getValueAsInt(field.value);
    os << "},\n";
  }
  os << "};\n\nconstexpr const GpuRates *ratesOf(unsigned sm) {\n  for (const GpuRates &rates : kGpuRates)\n"
     << "    if (rates.sm == sm)\n      return &rates;\n  return nullptr;\n}\n\n} // namespace fagen\n";
}

TableGen::Emitter::Opt registration("gen-gpus", emitGpus, "rates of GPUs");

} // namespace
} // namespace fagen::tblgen::gpusEmitter

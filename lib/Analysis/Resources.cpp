// fagen: registers and occupancy, estimated from buffers and the target's tables.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Analysis/Resources.h"

#include "fagen/IR/Measures.h"
#include "fagen/IR/OpClasses.h"
#include "fagen/Target/MmaInstrs.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace fagen;
using namespace fagen::ir;

/// Addresses, loop state and temporaries in addition to the fragments: measured on the shipped kernels, 30 to 60.
static constexpr unsigned kOtherRegisters = 48;
/// Addresses, loop counters, row maxima and sums, one operand: what no kernel does without; and where warp groups
/// multiply.
static constexpr unsigned kLeastRegisters = 24, kLeastOfGroup = 32;
/// ptxas hands out registers to warps in units of 8 a thread.
static constexpr unsigned kRegisterUnit = 8;

/// Registers a thread holds of a fragment: its share of a warp's elements, or without mma_sync of the rows that
/// every lane keeps.
static unsigned fragmentRegisters(const Kernel &kernel, const Buffer &buffer) {
  const bool isMma = mmaFamily(kernel.backend).keepsResults;
  if (buffer.columns == 1)
    return isMma ? buffer.rows / 16 * 2 : buffer.rows.number();
  if (!isMma && buffer.type == ElementType::F32)
    return buffer.rows * llvm::divideCeil(buffer.columns, 64) * 2;
  return buffer.rows * buffer.columns * sizeOf(buffer.type) / 4 / 32;
}

Occupancy fagen::occupancyOf(unsigned registers, unsigned threads, uint64_t sharedBytes, const TargetInfo &target) {
  const unsigned perThread = llvm::alignTo(registers, kRegisterUnit);
  const std::pair<unsigned, const char *> limits[] = {
      {unsigned(target.sharedPerSm / (sharedBytes + target.sharedReserved)), "shared memory"},
      {target.registersPerSm / (perThread * threads), "registers"},
      {target.maxWarpsPerSm / (threads / 32), "warps"},
      {target.maxBlocksPerSm, "CTA slots"}};
  const auto *scarcest = std::min_element(std::begin(limits), std::end(limits),
                                          [](const auto &a, const auto &b) { return a.first < b.first; });
  return {scarcest->first, scarcest->second};
}

/// What products take as they convert others' results: it takes the registers that those leave.
static bool isConverted(const Kernel &kernel, const Buffer *fragment) {
  bool found = false;
  for (const Role &role : kernel.roles)
    forEach<ConvertOp>(role.body, [&](ConvertOp<const Op> convert) { found |= convert.p().buffer == fragment; });
  return found;
}

/// Scores of part of a tile of keys: they take the registers of those of all of it.
static bool isOfPart(const Kernel &kernel, const Buffer &fragment) {
  return llvm::any_of(kernel.roles, [&](const Role &role) {
    const Buffer *const keys = rightOperandInto(role, &fragment);
    bool hasWider = false;
    forEach<MmaIssueOp>(role.body, [&](MmaIssueOp<const Op> product) {
      hasWider |= product.b().buffer == keys && product.acc().buffer->columns > fragment.columns;
    });
    return keys && hasWider;
  });
}

/// Tiles of Q, S and O in fragments, P next to the next tile's S where steps overlap, and what no kernel does without.
static unsigned leastRegisters(const Kernel &kernel) {
  const Overlap overlap = valueOr(kernel.options.overlap, Overlap::None);
  const bool isBeside = overlap == Overlap::Intra || overlap == Overlap::Both;
  unsigned registers = mmaFamily(kernel.backend).isAsynchronous ? kLeastOfGroup : kLeastRegisters;
  for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
    if (buffer->space == Space::Fragment && buffer->columns > 1 && !isOfPart(kernel, *buffer) &&
        (isBeside || !isConverted(kernel, buffer.get())))
      registers += fragmentRegisters(kernel, *buffer);
  return registers;
}

ResourceEstimate fagen::estimateResources(const Kernel &kernel, uint64_t sharedBytes, const TargetInfo &target) {
  ResourceEstimate estimate;
  estimate.mostRegisters = target.maxRegistersPerThread;
  unsigned fragments = 0;
  for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
    if (buffer->space == Space::Fragment && !isConverted(kernel, buffer.get()) && !isOfPart(kernel, *buffer))
      fragments += fragmentRegisters(kernel, *buffer);
  estimate.leastRegisters = leastRegisters(kernel);
  estimate.registers = std::min(kOtherRegisters + fragments, target.maxRegistersPerThread);
  if (const auto most = measureOf(kernel, Measure::MathRegisters)) { // roles share out what the CTA begins with
    estimate.mostRegisters = std::min(estimate.mostRegisters, unsigned(*most));
    estimate.registers = target.registersPerSm / kernel.threads / kRegisterUnit * kRegisterUnit;
  }
  const Occupancy occupancy = occupancyOf(estimate.registers, kernel.threads, sharedBytes, target);
  estimate.ctasPerSm = occupancy.ctasPerSm;
  estimate.limit = occupancy.limit;
  return estimate;
}

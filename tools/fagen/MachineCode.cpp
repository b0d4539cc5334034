// fagen: --cubins.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "MachineCode.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Support/xxhash.h"

#include <fmt/format.h>

using namespace llvm;

namespace fagen {

/// What the runtime's hashParts makes of one text: its length, then itself.
static std::string hashOf(StringRef text) {
  std::string bytes(8, '\0');
  support::endian::write64le(bytes.data(), text.size());
  bytes += text;
  const XXH128_hash_t hash = xxh3_128bits(arrayRefFromStringRef(bytes));
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

/// Text of an architecture-specific target is compiled for its own compute capability alone.
static bool isCompiledFor(const Variant &variant, unsigned sm) {
  const TargetInfo &target = *variant.target;
  return target.exact ? sm == target.sm : target.runsOn(sm) && sm >= firstSmOf(variant);
}

/// As dispatch orders targets: the GPU's own, then the nearest lower one, then higher ones.
static unsigned distanceTo(const TargetInfo &target, unsigned sm) {
  constexpr unsigned kHigher = 1u << 16;
  return target.sm <= sm ? sm - target.sm : kHigher + target.sm - sm;
}

/// Whether dispatch would rather take the text of another target for the same variant.
static bool isNearerThere(const CompiledKernel &kernel, const Variant &variant, unsigned sm) {
  return any_of(kernel.variants, [&](const CompiledVariant &other) {
    const TargetInfo &target = *other.variant->target;
    return other.variant->name == variant.name && isCompiledFor(*other.variant, sm) &&
           distanceTo(target, sm) < distanceTo(*variant.target, sm);
  });
}

namespace {

struct Job {
  CompiledVariant &variant;
  VariantPlan &plan;
  unsigned sm;
  std::string arch; ///< "sm_90a"
  Nvcc::Result result;
};

} // namespace

static std::vector<Job> jobsOf(CompiledKernel &kernel, ArrayRef<unsigned> sms) {
  std::vector<Job> jobs;
  for (auto [variant, plan] : zip(kernel.variants, kernel.plan.variants))
    for (unsigned sm : sms) {
      const TargetInfo &target = *variant.variant->target;
      if (isCompiledFor(*variant.variant, sm) && !isNearerThere(kernel, *variant.variant, sm))
        jobs.push_back({variant, plan, sm, target.exact ? target.name.str() : fmt::format("sm_{}", sm), {}});
    }
  return jobs;
}

void addMachineCode(CompiledKernel &kernel, ArrayRef<unsigned> sms, const Nvcc &nvcc, StringRef directory,
                    OutputSet &files, Diagnostics &diags) {
  std::vector<Job> jobs = jobsOf(kernel, sms);
  DefaultThreadPool pool;
  for (Job &job : jobs)
    pool.async([&job, &nvcc] { job.result = nvcc.compile(job.variant.source, job.arch, "cubin"); });
  pool.wait();
  for (Job &job : jobs) {
    if (!job.result.ok) {
      diags.internalError("generated text",
                          "nvcc refuses " + job.variant.variant->name + " for " + job.arch + ":\n" + job.result.log,
                          job.variant.variant->location);
      return; // one log is enough to see what is wrong
    }
    SmallString<128> name(job.plan.sourcePath);
    sys::path::replace_extension(name, job.arch + ".cubin");
    SmallString<128> path(directory);
    sys::path::append(path, kernel.spec->name, name);
    job.plan.binaries.push_back(
        {name.str().str(), job.sm, job.variant.variant->target->exact, hashOf(job.variant.source)});
    job.plan.row.clear(); // which is without them
    files.add(path.str().str(), std::move(job.result.output));
  }
}

} // namespace fagen

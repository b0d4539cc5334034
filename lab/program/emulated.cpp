// fagen: programs on the emulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "apart.h"
#include "from_table.h"
#include "promises.h"
#include "run.h"

#include "emulator/emulator.h"
#include "lab/cases/problem.h"
#include "runtime/src/programs/bind.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace fagen::lab {

namespace {

/// So few that the CTAs of a persistent kernel have several tiles each.
constexpr int64_t kEmulatedSms = 2;

std::vector<Failure> launchOn(emulator::Module &module, const emulator::Launch &launch,
                              const std::vector<unsigned char> &params, int attempt) {
  static constexpr emulator::Options::Landing kLandings[] = {emulator::Options::Latest, emulator::Options::Earliest,
                                                             emulator::Options::Random};
  if (launch.grid == 0)
    return {};
  emulator::Options options;
  options.landing = kLandings[attempt % 3];
  options.seed = static_cast<uint64_t>(attempt);
  const emulator::Report report = module.launch(launch, params.data(), params.size(), options);
  std::vector<Failure> failures;
  for (const emulator::Finding &finding : report.findings)
    failures.push_back({"emulator",
                        fmt::format("{}:{}: {}: {}", finding.file, finding.line, finding.kind, finding.message),
                        std::make_shared<emulator::Finding>(finding)});
  if (!report.ok && failures.empty())
    failures.push_back({"emulator", "the launch failed without a finding"});
  return failures;
}

/// What a workspace holds before a run: zeros in front, then anything.
struct EmulatedWorkspace {
  explicit EmulatedWorkspace(const BoundCall &bound)
      : bytes(bound.workspaceBytes + kProgramWorkspaceAlignment), zeroed(bound.zeroedBytes) {
    const auto address = reinterpret_cast<uintptr_t>(bytes.data());
    begin = bytes.data() + (kProgramWorkspaceAlignment - address % kProgramWorkspaceAlignment);
    std::memset(begin + zeroed, 0xff, bound.workspaceBytes - zeroed);
  }
  bool isZeroInFront() const {
    return std::all_of(begin, begin + zeroed, [](unsigned char byte) { return byte == 0; });
  }

  std::vector<unsigned char> bytes;
  unsigned char *begin;
  uint64_t zeroed;
};

/// From a tensor's first element to its last.
int64_t reachOf(const fagen_recipe_tensor &tensor, const BoundTensor &bound) {
  int64_t reach = 1;
  for (uint32_t d = 0; d < tensor.rank; ++d)
    reach = bound.extent[d] == 0 ? 0 : reach == 0 ? 0 : reach + (bound.extent[d] - 1) * bound.stride[d];
  return reach;
}

std::vector<emulator::Buffer> buffersOf(const BoundCall &bound) {
  std::vector<emulator::Buffer> buffers;
  for (uint32_t i = 0; i < bound.recipe->tensor_count; ++i) {
    const fagen_recipe_tensor &tensor = tensorAt(*bound.recipe, i);
    const uint32_t bytes = factsOf(tensor.element).bytes;
    const bool isWritten = (tensor.flags & (FAGEN_TENSOR_WRITTEN | FAGEN_TENSOR_WORKSPACE)) != 0;
    emulator::Buffer &made = buffers.emplace_back(
        emulator::Buffer{const_cast<void *>(bound.addressOf(i)),
                         static_cast<size_t>(reachOf(tensor, bound.tensors[i]) * bytes), isWritten, tensor.name});
    made.elementBytes = bytes;
    if (isWritten && !(tensor.flags & FAGEN_TENSOR_ZEROED))
      made.written = std::make_shared<std::vector<unsigned char>>(made.bytes);
  }
  return buffers;
}

class EmulatedProgram : public ProgramRunner {
public:
  std::string name() const override { return "emulator"; }
  int64_t sms() const override { return kEmulatedSms; }

  std::vector<Failure> run(const ProgramPlan &plan, const Sizes &sizes, ProgramMemory &memory, int attempt) override {
    if (plan.table)
      return runRow(plan, sizes, memory, attempt);
    if (!module || source != plan.source) {
      std::string refusal;
      source = plan.source;
      if (!(module = emulator::Module::compile(source, refusal)))
        return {{"compile", refusal}};
    }
    const BuffersApart apart(memory);
    const std::vector<unsigned char> params = packParams(plan, sizes, addressesOf(apart, memory),
                                                         [](const device::TensorMapDescription &map, const char *,
                                                            void *place) { std::memcpy(place, &map, sizeof(map)); });
    const std::vector<emulator::Buffer> buffers = describe(plan, memory, apart);
    std::vector<Failure> failures;
    for (const ProgramLaunch &launch : plan.launches)
      if (failures.empty())
        failures = runOne(launch, sizes, buffers, params, attempt);
    apart.copyTo(memory);
    return failures;
  }

private:
  static std::vector<const void *> addressesOf(const BuffersApart &apart, const ProgramMemory &memory) {
    std::vector<const void *> addresses;
    for (size_t i = 0; i < memory.size(); ++i)
      addresses.push_back(apart.begin(i));
    return addresses;
  }

  /// As the runtime runs it: the row that it finds, and its recipe.
  static std::vector<Failure> runRow(const ProgramPlan &plan, const Sizes &sizes, ProgramMemory &memory, int attempt) {
    const BuffersApart apart(memory);
    const TableCall made(plan, sizes, addressesOf(apart, memory));
    fagen_device *device = nullptr;
    const int sm = std::stoi(plan.target.substr(3));
    if (fagen_device_describe(static_cast<uint32_t>(sm), kEmulatedSms, &device))
      throw UserError(fagen_last_error());
    fagen_choice choice = fagen_choice_init();
    const fagen_status status = fagen_query_program(&plan.table, 1, &made.call, device, &choice);
    fagen_device_destroy(device);
    if (status)
      throw UserError(fagen_last_error());
    std::vector<Failure> failures = emulateCall(plan.source, *choice.row, made.call, attempt);
    apart.copyTo(memory);
    return failures;
  }

  /// Launches share what they know of written bytes.
  static std::vector<emulator::Buffer> describe(const ProgramPlan &plan, const ProgramMemory &memory,
                                                const BuffersApart &apart) {
    std::vector<emulator::Buffer> buffers;
    for (size_t i = 0; i < memory.size(); ++i) {
      const ProgramBuffer &buffer = plan.buffers[i];
      emulator::Buffer &made =
          buffers.emplace_back(emulator::Buffer{apart.begin(i), memory[i].size(), buffer.isWritten, buffer.name});
      made.elementBytes = static_cast<unsigned>(bytesOf(buffer.element));
      if (buffer.isWritten && !buffer.isZeroed)
        made.written = std::make_shared<std::vector<unsigned char>>(memory[i].size());
    }
    return buffers;
  }

  std::vector<Failure> runOne(const ProgramLaunch &launch, const Sizes &sizes,
                              const std::vector<emulator::Buffer> &buffers, const std::vector<unsigned char> &params,
                              int attempt) const {
    emulator::Launch emulated;
    emulated.symbol = launch.symbol;
    emulated.grid = ctasOf(launch, sizes);
    emulated.threads = launch.threads;
    emulated.cluster = launch.cluster;
    emulated.sharedBytes = static_cast<size_t>(launch.sharedBytes.evaluate(sizes));
    emulated.buffers = buffers;
    if (launch.isResident)
      emulated.workers = emulated.grid;
    return launchOn(*module, emulated, params, attempt);
  }

  std::unique_ptr<emulator::Module> module;
  std::string source; ///< what the module was made of
};

} // namespace

std::vector<Failure> emulateCall(const std::string &source, const fagen_row &row, const fagen_call &call, int attempt) {
  std::string refusal;
  const std::unique_ptr<emulator::Module> module = emulator::Module::compile(source, refusal);
  if (!module)
    return {{"compile", refusal}};
  BoundCall bound;
  if (bindCall(row, call, kEmulatedSms, false, bound) || checkAddresses(bound) || checkMaps(bound))
    return {{"call", fagen_last_error()}};
  requirePromises(bound);
  const EmulatedWorkspace workspace(bound);
  bound.workspace = workspace.begin;
  std::vector<unsigned char> argument(row.recipe->argument_bytes);
  if (packArgument(bound, argument.data(),
                   [](const device::TensorMapDescription &map, const char *, unsigned char *place) {
                     std::memcpy(place, &map, sizeof(map));
                     return fagen_status(FAGEN_OK);
                   }))
    return {{"call", fagen_last_error()}};
  const std::vector<emulator::Buffer> buffers = buffersOf(bound);
  for (uint32_t i = 0; i < row.launch_count; ++i) {
    emulator::Launch launch;
    if (countCtas(bound, row, i, launch.grid))
      return {{"call", fagen_last_error()}};
    launch.symbol = row.launches[i].symbol;
    launch.threads = row.launches[i].threads;
    launch.sharedBytes = row.launches[i].shared_bytes;
    launch.cluster = std::max(row.launches[i].reserved, 1u);
    launch.buffers = buffers;
    if (std::vector<Failure> failures = launchOn(*module, launch, argument, attempt); !failures.empty())
      return failures;
  }
  if (!workspace.isZeroInFront())
    return {{"workspace", "what must be zero in the workspace is not after the run, which the next one needs"}};
  return {};
}

std::unique_ptr<ProgramRunner> makeEmulatedProgram() { return std::make_unique<EmulatedProgram>(); }

} // namespace fagen::lab

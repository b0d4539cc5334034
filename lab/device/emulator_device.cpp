// fagen: checks on the CPU: the kernel's own text, run by the emulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "counters.h"
#include "device.h"
#include "emulator/emulator.h"
#include "lab/cases/form_inputs.h"
#include "lab/cases/placement.h"
#include "runtime/src/arguments.h"
#include "runtime/src/dispatch.h"
#include "runtime/src/maps.h"
#include "runtime/src/state.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <map>

namespace fagen::lab {

namespace {

struct DestroyDevice {
  void operator()(fagen_device *device) const { fagen_device_destroy(device); }
};

/// CTAs, or clusters, of a persistent kernel: few, so that each has several tiles, and two, so that they take turns.
constexpr uint32_t kPersistentCtas = 2;

bool isPersistent(const fagen_row &row) {
  return row.launches[0].grid == FAGEN_GRID_PERSISTENT || row.launches[0].grid == FAGEN_GRID_CLUSTERS;
}

/// For each element that the tensor spans whether it is the tensor's; null when all are.
std::shared_ptr<const std::vector<unsigned char>> usedElements(const Placement &place) {
  if (place.elements() == place.span())
    return nullptr;
  const auto [batches, heads, rows, columns] = place.sizes;
  auto used = std::make_shared<std::vector<unsigned char>>(place.span());
  for (int64_t i = 0; i < batches * heads * rows; ++i)
    std::fill_n(used->begin() + place.offset(i / rows / heads, i / rows % heads, i % rows), columns, 1);
  return used;
}

emulator::Buffer describeMemory(const MemoryView &view) {
  emulator::Buffer buffer{view.begin, static_cast<size_t>(view.bytes), view.writable, view.name};
  if (view.form) {
    buffer.used = std::make_shared<std::vector<unsigned char>>(view.form->used);
    buffer.elementBytes = view.form->elementBytes;
  }
  if (!view.placement || !view.bytes)
    return buffer;
  buffer.used = usedElements(*view.placement);
  buffer.elementBytes = static_cast<unsigned>(view.bytes / view.placement->span());
  return buffer;
}

/// Enough for grids of small problems to be split.
constexpr uint32_t kEmulatedSms = 16;

class EmulatorDevice : public TestDevice {
public:
  explicit EmulatorDevice(EmulatorHooks hooks) : hooks(std::move(hooks)) {}

  std::string name() const override { return "emulator"; }

  /// A description of the row's own target, so that every target's text runs.
  fagen_device *queryDevice(const fagen_row &row) override {
    const uint32_t sms = isPersistent(row) ? kPersistentCtas * clusterOf(row.launches[0]) : kEmulatedSms;
    auto &device = devices[{row.sm, sms}];
    if (!device) {
      fagen_device *described = nullptr;
      if (fagen_device_describe(row.sm, sms, &described) != FAGEN_OK)
        throw DeviceError(fagen_last_error());
      device.reset(described);
    }
    return device.get();
  }

  /// Batches gigabytes apart are for GPUs.
  int64_t largestTensor() const override { return int64_t{1} << 30; }

  void *allocate(int64_t bytes) override {
    void *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!memory)
      throw DeviceError(fmt::format("allocate {} B of host memory", bytes));
    return memory;
  }
  void release(void *memory) override { std::free(memory); }
  void upload(void *to, const void *from, int64_t bytes) override { std::memcpy(to, from, bytes); }
  void download(void *to, const void *from, int64_t bytes) override { std::memcpy(to, from, bytes); }

  Built build(const Launch &launch) override { return {textOf(launch).refusal, "c++"}; }

  std::vector<Failure> run(const Launch &launch) override {
    const fagen_table *table = launch.set->table();
    fagen_choice choice = makeAbi<fagen_choice>();
    if (fagen_status status = fagen_query(&table, 1, &launch.problem, queryDevice(*launch.row), &choice))
      return {{"launch", fmt::format("fagen_query: {}: {}", fagen_status_name(status), fagen_last_error())}};
    ChoiceState state = loadState(choice);
    if (state.ctas == 0)
      return {};
    std::vector<char> own = launch.workspace ? std::vector<char>() : makeWorkspace(choice);
    LaunchArgument argument;
    device::MappedAttentionParams &params = argument.params;
    params = argumentsOf(*launch.row, state.params, launch.tensors, launch.workspace ? launch.workspace : own.data());
    describeMaps(*launch.row, params);
    if (fagen_status status = setForm(choice, launch.tensors, argument))
      return {{"launch", fmt::format("{}: {}", fagen_status_name(status), fagen_last_error())}};
    emulator::Buffer workspace{params.workspace, choice.workspace_bytes, true, "workspace"};
    workspace.written = std::make_shared<std::vector<unsigned char>>(choice.workspace_bytes);

    const Text &text = textOf(launch);
    if (!text.module)
      return {{"compile", text.refusal}};
    static constexpr emulator::Options::Landing kLandings[] = {emulator::Options::Latest, emulator::Options::Earliest,
                                                               emulator::Options::Random};
    emulator::Options options;
    options.landing = kLandings[launch.attempt % 3];
    options.seed = launch.attempt;
    std::vector<Failure> failures;
    forEachLaunch(*launch.row, [&](uint32_t i) {
      if (hooks.prepare)
        hooks.prepare(launch, i, options);
      emulator::Report report =
          text.module->launch(describe(launch, i, gridOf(launch.row->launches[i], state), workspace), &argument,
                              argumentBytes(choice), options);
      if (hooks.observe)
        hooks.observe(launch, i, report);
      for (const emulator::Finding &finding : report.findings)
        failures.push_back({"emulator",
                            fmt::format("{}:{}: {}: {}", finding.file, finding.line, finding.kind, finding.message),
                            std::make_shared<emulator::Finding>(finding)});
      if (!report.ok && failures.empty())
        failures.push_back({"emulator", "the launch failed without a finding"});
      return failures.empty();
    });
    std::memset(static_cast<char *>(params.workspace) + choice.workspace_bytes - state.cleared, 0, state.cleared);
    if (failures.empty() && !launch.workspace)
      failures = checkCounter(*launch.row, own);
    if (failures.empty() && !launch.workspace)
      checkWorkspaceLeft(*launch.row, own, failures);
    return failures;
  }

private:
  static emulator::Launch describe(const Launch &launch, uint32_t index, uint32_t grid,
                                   const emulator::Buffer &workspace) {
    const fagen_launch &part = launch.row->launches[index];
    emulator::Launch emulated;
    emulated.symbol = part.symbol;
    emulated.grid = grid;
    emulated.threads = part.threads;
    if (isPersistent(*launch.row))
      emulated.workers = grid; // all CTAs at once, as on a GPU
    emulated.cluster = clusterOf(part);
    emulated.mayBeginEarly = (launch.row->dependent_launches >> index & 1) != 0;
    emulated.sharedBytes = part.shared_bytes;
    for (const MemoryView &view : launch.memory)
      emulated.buffers.push_back(describeMemory(view));
    if (workspace.bytes)
      emulated.buffers.push_back(workspace);
    for (const OpLine &op : launch.set->ops(*launch.row, index))
      emulated.lines.push_back({op.line, op.op, op.spec});
    return emulated;
  }

  /// A row's text, compiled once. No module, but the compiler's words, where it refuses it.
  struct Text {
    std::unique_ptr<emulator::Module> module;
    std::string refusal;
  };
  const Text &textOf(const Launch &launch) {
    Text &text = texts[launch.row];
    if (!text.module && text.refusal.empty())
      text.module = emulator::Module::compile(launch.set->sourcePath(*launch.row).string(), text.refusal);
    return text;
  }

  EmulatorHooks hooks;
  std::map<std::pair<uint32_t, uint32_t>, std::unique_ptr<fagen_device, DestroyDevice>> devices; ///< by target and SMs
  std::map<const fagen_row *, Text> texts;
};

} // namespace

std::unique_ptr<TestDevice> makeEmulatorDevice(EmulatorHooks hooks) {
  return std::make_unique<EmulatorDevice>(std::move(hooks));
}

} // namespace fagen::lab

// fagen: fagen-run list: shows the rows, or why a problem gets its row.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Command.h"
#include "fagen/Target/GpuNames.h"
#include "lab/kernel_set/forms.h"
#include "lab/program/from_table.h"

#include <fmt/format.h>

namespace fagen::lab {

namespace {

/// "89", "sm_89" or "sm_90a".
uint32_t parseSm(std::string text) {
  if (text.starts_with("sm_"))
    text.erase(0, 3);
  if (text.ends_with('a'))
    text.pop_back();
  return static_cast<uint32_t>(parseInteger(text, "--sm"));
}

/// Multiprocessors of the GPU that stands for a compute capability; an H100's where none is known.
uint32_t smsOf(uint32_t sm) {
  const std::optional<NamedGpu> gpu = gpuNamed(fmt::format("sm_{}", sm));
  return gpu ? gpu->sms : gpuNamed("H100")->sms;
}

class ListCommand : public Command {
public:
  ListCommand() : Command("list", "show the rows, or why a problem gets its row") {}

  void addOptions(CLI::App &app) override {
    app.add_option("--why,--problem,--shape,--case", shapes,
                   "say which row a problem gets, and by which evidence: b,h,hkv,sq,sk,d[,dv], mission, mission2");
    app.add_option("--mask,--form", mask, "of the problem: none, causal, or a form by its name")->capture_default_str();
    app.add_option("--arg", numbers, "a scalar of the form: window=1024; may be repeated");
    app.add_option("--dtype", dtype, "of the problem: f16, bf16 (default: what the sets have)");
    app.add_option("--sm", sm, "compute capability to dispatch for: 89 (default: the first row's)");
    app.footer("Examples:\n"
               "  fagen-run list generated                                     every row of every set\n"
               "  fagen-run list generated/h200 --why 1,16,16,4096,4096,128    which row a problem gets, on the set's "
               "own GPU\n"
               "  fagen-run list generated --why 8,32,8,1,8192,128 --sm 90 --json\n"
               "Exit codes: 0 done, 1 your mistake, 2 no row computes the problem. `explain` names the GPU.");
  }

  int run() override {
    auto sets = loadKernelSets(directories);
    Json result = envelope(nullptr);
    if (shapes.empty()) {
      result["sets"] = listJson(sets);
      deliver(listTable(sets) + programTable(sets), result);
      return kOk;
    }
    const std::vector<const fagen_row *> rows = sets.front()->rows();
    if (rows.empty())
      throw UserError(fmt::format("{} has programs alone, which no shape chooses; fagen-run program runs them",
                                  sets.front()->directory().string()));
    uint32_t target = sm.empty() ? rows.front()->sm : parseSm(sm);
    std::string text;
    bool found = true;
    result["explanations"] = Json::array();
    for (const std::string &shape : shapes) {
      const Case problem = explainedCase(sets, shape, mask, dtype, numbers);
      Explanation explanation = explain(sets, problem, target, smsOf(target));
      text += explanation.text + (explanation.text.ends_with('\n') ? "" : "\n");
      result["explanations"].push_back(explanationJson(explanation));
      found = found && explanation.status == FAGEN_OK;
    }
    deliver(text, result);
    return found ? kOk : kFailedCheck;
  }

private:
  std::vector<std::string> shapes, numbers;
  std::string mask = "none", dtype, sm;
};

} // namespace

std::unique_ptr<Command> makeListCommand() { return std::make_unique<ListCommand>(); }

} // namespace fagen::lab

// fagen: fagen-run explain: which row computes a problem on a GPU and why, and why not each other one.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Command.h"
#include "fagen/Target/GpuNames.h"
#include "lab/kernel_set/forms.h"

#include <fmt/format.h>
#include <sstream>

namespace fagen::lab {

namespace {

NamedGpu parseGpu(const std::string &name) {
  if (const std::optional<NamedGpu> gpu = gpuNamed(name))
    return *gpu;
  throw UserError(fmt::format("--gpu {} is not a GPU that fagen knows; it takes sm_NN, {}", name, gpuNames()));
}

/// What fagen_explain says in lines, as lists: its first word is what a line is about.
Json linesByKind(const std::string &text) {
  Json lists{{"select", Json::array()}, {"rejected", Json::array()}};
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t space = line.find(' ');
    const std::string kind = line.substr(0, space);
    const size_t begin = line.find_first_not_of(' ', space);
    const std::string said = begin == std::string::npos ? "" : line.substr(begin);
    const size_t open = said.find(" ("), close = said.find("): ", open);
    if (kind == "select" || kind == "claim")
      lists["select"].push_back(said);
    else if (kind == "not" && close != std::string::npos)
      lists["rejected"].push_back({{"variant", said.substr(0, open)},
                                   {"target", said.substr(open + 2, close - open - 2)},
                                   {"reason", said.substr(close + 3)}});
    else if (kind == "picked")
      lists["reason"] = close != std::string::npos ? said.substr(close + 3) : said;
  }
  return lists;
}

class ExplainCommand : public Command {
public:
  ExplainCommand() : Command("explain", "say which row computes a problem on a GPU, and why not the others") {}

  void addOptions(CLI::App &app) override {
    app.add_option("--gpu", gpu, "the GPU that it is for: h100, rtx4090, sm_86; it need not be here")->required();
    app.add_option(
           "--problem,--shape,--case", shapes,
           "b,h,hkv,sq,sk,d[,dv] [mask=] [form=] [dtype=]: batch, heads, heads of K and V, rows, keys, head dims")
        ->required();
    app.add_option("--mask,--form", mask, "of the problem: none, causal, or a form by its name")->capture_default_str();
    app.add_option("--arg", numbers, "a scalar of the form: window=1024; may be repeated");
    app.add_option("--dtype", dtype, "of the problem: f16, bf16 (default: what the sets have)");
    app.add_option("--sms", sms, "multiprocessors, where the GPU has other than its name says");
    app.footer(
        "EXAMPLES:\n"
        "  fagen-run explain generated --gpu h100 --problem 1,16,16,4096,4096,128 --mask causal\n"
        "      the row, the lines of select, and a reason for each other row of the same kind\n"
        "  fagen-run explain generated/h200 generated/decode_fp16 --gpu sm_90 --problem 8,32,8,1,8192,128 --json\n"
        "      of several sets as one, for programs\n\n"
        "EXIT CODES: 0 a row was found; 1 a mistake on the command line or in a set; 2 no row computes the problem");
  }

  int run() override {
    NamedGpu asked = parseGpu(gpu);
    asked.sms = sms ? sms : asked.sms;
    const auto sets = loadKernelSets(directories);
    Json result = envelope(nullptr);
    result["explanations"] = Json::array();
    std::string text;
    bool found = true;
    for (const std::string &shape : shapes) {
      const Case problem = explainedCase(sets, shape, mask, dtype, numbers);
      const Explanation explanation = explain(sets, problem, asked.sm, asked.sms);
      text += (text.empty() ? "" : "\n") + explanation.text + (explanation.text.ends_with('\n') ? "" : "\n");
      Json said = explanationJson(explanation);
      said["sms"] = asked.sms;
      said.update(linesByKind(explanation.text));
      result["explanations"].push_back(said);
      found = found && explanation.status == FAGEN_OK;
    }
    deliver(text, result);
    return found ? kOk : kFailedCheck;
  }

private:
  std::vector<std::string> shapes, numbers;
  std::string gpu, mask = "none", dtype;
  uint32_t sms = 0;
};

} // namespace

std::unique_ptr<Command> makeExplainCommand() { return std::make_unique<ExplainCommand>(); }

} // namespace fagen::lab

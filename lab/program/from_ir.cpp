// fagen: a program of textual IR as a plan and its text, by fagen-opt.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "from_ir.h"

#include "lab/support/child_process.h"
#include "lab/support/json_file.h"
#include "lab/support/user_error.h"
#include "lab/support/write_file.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <system_error>

namespace fagen::lab {

namespace fs = std::filesystem;

namespace {

/// Proofs take seconds at most.
constexpr double kSeconds = 600;

std::string findOptimizer() {
  if (const char *named = std::getenv("FAGEN_OPT"); named && *named)
    return named;
  std::error_code error;
  const fs::path sibling = fs::read_symlink("/proc/self/exe", error).parent_path() / "fagen-opt";
  return fs::exists(sibling, error) ? sibling.string() : "fagen-opt";
}

std::string emit(const std::string &path, const char *what, bool hasClocks) {
  std::string text;
  const std::string program = findOptimizer();
  std::vector<std::string> command = {program, path, "--lower", fmt::format("--emit={}", what)};
  if (hasClocks)
    command.push_back("--clocks");
  const ChildOutcome outcome = runChild(command, kSeconds, [&](const std::string &line) { text += line + "\n"; });
  if (outcome.exitCode == 127)
    throw UserError(fmt::format("{} cannot be started; FAGEN_OPT names another", program));
  if (!outcome.succeeded())
    throw UserError(outcome.errors.empty() ? fmt::format("{} failed on {}", program, path) : outcome.errors);
  return text;
}

} // namespace

ProgramFromIr::ProgramFromIr(const std::string &path, bool hasClocks) {
  const std::string text = emit(path, "cuda", hasClocks), plan = emit(path, "plan", hasClocks);
  std::string name = (fs::temp_directory_path() / "fagen-program-XXXXXX").string();
  if (!mkdtemp(name.data()))
    throw UserError(fmt::format("cannot make a directory '{}': {}", name, std::generic_category().message(errno)));
  directory = name;
  auto json = parseText<nlohmann::json>(plan);
  json["source"] = "program.cu";
  writeFile(directory + "/program.cu", text);
  writeFile(this->plan(), json.dump());
}

ProgramFromIr::~ProgramFromIr() {
  std::error_code ignored;
  fs::remove_all(directory, ignored);
}

std::string ProgramFromIr::plan() const { return directory + "/plan.json"; }

} // namespace fagen::lab

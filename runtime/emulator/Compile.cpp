// fagen: a kernel's text to a library of host code, by the system's C++ compiler.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Compile.h"

#include "Cache.h"
#include "EmbeddedHeaders.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

extern char **environ;

namespace fagen::emulator {

namespace fs = std::filesystem;

namespace {

using Arguments = std::vector<std::string>;

/// Runs a program, its output to `outputPath`. The exit status; -1 when it could not be started.
int runProgram(const Arguments &arguments, const fs::path &outputPath) {
  std::vector<char *> pointers;
  for (const std::string &argument : arguments)
    pointers.push_back(const_cast<char *>(argument.c_str()));
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, outputPath.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child;
  const int failure = posix_spawnp(&child, pointers[0], &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure)
    return -1;
  int status;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/// A name in the cache directory that no other process or thread uses.
fs::path temporaryPath(const fs::path &directory) {
  std::string name = (directory / "tmp-XXXXXX").string();
  const int file = mkstemp(name.data());
  if (file >= 0)
    close(file);
  return name;
}

struct Compiler {
  std::string program;
  std::string version; ///< what --version prints
};

/// The first of the candidates that runs; asked once a process and name.
Compiler findCompiler(const fs::path &directory, std::string &error) {
  static std::mutex mutex;
  static std::map<std::string, std::string> versions;
  const std::lock_guard lock(mutex);
  const char *chosen = std::getenv("FAGEN_CXX");
  const Arguments candidates = chosen && *chosen ? Arguments{chosen} : Arguments{"c++", "g++", "clang++"};
  for (const std::string &program : candidates) {
    std::string &version = versions[program];
    if (version.empty()) {
      const fs::path output = temporaryPath(directory);
      if (runProgram({program, "--version"}, output) == 0)
        version = readFile(output).value_or("");
      fs::remove(output);
    }
    if (!version.empty())
      return {program, version};
  }
  error = chosen && *chosen ? fmt::format("the compiler '{}', named by FAGEN_CXX, does not run", chosen)
                            : "no C++ compiler found: tried c++, g++ and clang++; FAGEN_CXX names another";
  return {};
}

/// Arithmetic is not contracted, and what a kernel leaves uninitialised is a pattern, not a lucky zero.
Arguments compilerFlags() {
  Arguments flags = {"-x",
                     "c++",
                     "-std=c++17",
                     "-O2",
                     "-fPIC",
                     "-shared",
                     "-w",
                     "-ffp-contract=off",
                     "-fno-exceptions",
                     "-fno-rtti",
                     "-fno-strict-aliasing",
                     "-fno-stack-protector",
                     "-fvisibility=hidden",
                     "-ftrivial-auto-var-init=pattern"};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    flags.insert(flags.end(), {"-mavx2", "-mfma"});
#endif
  return flags;
}

const std::string &headersHash() {
  static const std::string hash = [] {
    Hash all;
    for (const EmbeddedHeader &header : embeddedHeaders())
      all.add(header.name).add(header.text);
    return all.hex();
  }();
  return hash;
}

/// The embedded headers as files, written once a version. Empty with `error` set on failure.
fs::path headerDirectory(const fs::path &cache, std::string &error) {
  const fs::path directory = cache / ("include-" + headersHash());
  const fs::path complete = directory / "complete";
  if (fs::exists(complete))
    return directory;
  for (const EmbeddedHeader &header : embeddedHeaders()) {
    const fs::path path = directory / header.name;
    std::error_code code;
    fs::create_directories(path.parent_path(), code);
    if (!writeFile(path, header.text, error))
      return {};
  }
  return writeFile(complete, "", error) ? directory : fs::path();
}

std::string replaceAll(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

/// Compiles `source` to `library`. The compiler's messages on failure.
std::string runCompiler(const Compiler &compiler, const Arguments &flags, const fs::path &headers,
                        const fs::path &source, const fs::path &library) {
  Arguments command = {compiler.program};
  command.insert(command.end(), flags.begin(), flags.end());
  const std::string include = headers.string();
  command.insert(command.end(), {"-fmacro-prefix-map=" + include + "/=", "-I" + include, "-include",
                                 "fagen/emulator/prelude.h", source.string(), "-o", library.string(), "-lm"});
  const fs::path output = library.string() + ".log";
  const int status = runProgram(command, output);
  const std::string messages = readFile(output).value_or("");
  fs::remove(output);
  if (status == 0)
    return {};
  return messages.empty() ? fmt::format("'{}' ended with status {}", compiler.program, status) : messages;
}

} // namespace

fs::path compileKernel(const std::string &cuPath, std::string &error) {
  const std::optional<std::string> text = readFile(cuPath);
  if (!text) {
    error = fmt::format("cannot read '{}'", cuPath);
    return {};
  }
  const fs::path cache = cacheDirectory(error);
  if (cache.empty())
    return {};
  const Compiler compiler = findCompiler(cache, error);
  if (compiler.program.empty())
    return {};
  Arguments flags = compilerFlags();
  Hash key, second;
  key.add(*text).add(headersHash()).add(compiler.version);
  for (const std::string &flag : flags)
    key.add(flag);
  second.add(key.hex()).add(*text);
  const fs::path library = cache / fmt::format("{}{}.so", key.hex(), second.hex());
  if (isIntact(library))
    return library;

  const fs::path headers = headerDirectory(cache, error);
  if (headers.empty())
    return {};
  const fs::path source = fs::path(library).replace_extension(".cu");
  if (!writeFile(source, fmt::format("#line 1 \"{}\"\n{}", kKernelFile, *text), error))
    return {};
  const fs::path fresh = temporaryPath(cache);
  std::string messages = runCompiler(compiler, flags, headers, source, fresh);
  if (messages.find("trivial-auto-var-init") != std::string::npos) { // a compiler too old for it
    std::erase(flags, "-ftrivial-auto-var-init=pattern");
    messages = runCompiler(compiler, flags, headers, source, fresh);
  }
  const std::optional<std::string> code = messages.empty() ? readFile(fresh) : std::nullopt;
  fs::remove(fresh);
  if (!code) {
    error =
        fmt::format("'{}' does not compile for the emulator:\n{}", cuPath, replaceAll(messages, kKernelFile, cuPath));
    return {};
  }
  return writeFile(library, seal(*code), error) ? library : fs::path();
}

} // namespace fagen::emulator

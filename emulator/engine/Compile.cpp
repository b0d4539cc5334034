// fagen: a kernel's text to a library of host code, by the system's C++ compiler.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Compile.h"

#include "EmbeddedHeaders.h"
#include "emulator/emulator.h"
#include "runtime/src/compile/cache.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <spawn.h>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

extern char **environ;

namespace fagen::emulator {

namespace fs = std::filesystem;

namespace {

using Arguments = std::vector<std::string>;

constexpr int kLastStatus = 255;

/// Runs a program, its output to `outputPath`. The exit status; -1 when it could not be started, more than kLastStatus
/// when it was killed.
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
  return WIFEXITED(status) ? WEXITSTATUS(status) : kLastStatus + 1;
}

std::optional<std::string> readFile(const fs::path &path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

/// Where one kernel is compiled: made for this user alone, removed at the end.
class WorkDirectory {
public:
  WorkDirectory() : path((fs::temp_directory_path() / "fagen-XXXXXX").string()) {
    if (!mkdtemp(path.data()))
      throw MachineError(fmt::format("cannot make a directory in '{}': {}; TMPDIR names another place",
                                     fs::temp_directory_path().string(), std::strerror(errno)));
  }
  ~WorkDirectory() {
    std::error_code code;
    fs::remove_all(path, code);
  }
  WorkDirectory(const WorkDirectory &) = delete;
  WorkDirectory &operator=(const WorkDirectory &) = delete;

  fs::path file(std::string_view name) const { return fs::path(path) / name; }
  void write(std::string_view name, std::string_view content) const {
    fs::create_directories(file(name).parent_path());
    std::ofstream out(file(name), std::ios::binary);
    out << content;
    out.close();
    if (!out)
      throw MachineError(
          fmt::format("cannot write '{}': {}; TMPDIR names another place", file(name).string(), std::strerror(errno)));
  }

private:
  std::string path;
};

struct Compiler {
  std::string program;
  std::string version; ///< what --version prints
};

/// The first of the candidates that runs; asked once a process and name.
Compiler findCompiler() {
  static std::mutex mutex;
  static std::map<std::string, std::string> versions;
  const std::lock_guard lock(mutex);
  const char *chosen = std::getenv("FAGEN_CXX");
  const Arguments candidates = chosen && *chosen ? Arguments{chosen} : Arguments{"c++", "g++", "clang++"};
  for (const std::string &program : candidates) {
    std::string &version = versions[program];
    if (version.empty()) {
      const WorkDirectory work;
      const fs::path output = work.file("version");
      if (runProgram({program, "--version"}, output) == 0)
        version = readFile(output).value_or("");
    }
    if (!version.empty())
      return {program, version};
  }
  throw MachineError(chosen && *chosen ? fmt::format("the compiler '{}', named by FAGEN_CXX, does not run", chosen)
                                       : "no C++ compiler found: tried c++, g++ and clang++; FAGEN_CXX names another");
}

/// Arithmetic is not contracted, and what a kernel leaves uninitialised is a pattern, not a lucky zero. A kernel's own
/// code is a tenth of a run, its compilation half of a small check: -Og, against -O2, halves the one and leaves the
/// other.
Arguments compilerFlags() {
  Arguments flags = {"-x",
                     "c++",
                     "-std=c++17",
                     "-Og",
                     "-fPIC",
                     "-w",
                     "-ffp-contract=off",
                     "-fno-exceptions",
                     "-fno-rtti",
                     "-fno-strict-aliasing",
                     "-fno-stack-protector",
                     "-fvisibility=hidden",
                     "-ftrivial-auto-var-init=pattern",
                     "-fsanitize=integer-divide-by-zero",
                     "-fno-sanitize-recover=integer-divide-by-zero"};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    flags.insert(flags.end(), {"-mavx2", "-mfma"});
#endif
  return flags;
}

std::string replaceAll(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

/// One text on its way to a library. The headers are written anew for each: what is compiled is what the key covers.
class Compilation {
public:
  Compilation(const Compiler &compiler, Arguments flags) : compiler(compiler), flags(std::move(flags)) {
    for (const EmbeddedHeader &header : embeddedHeaders())
      work.write(fmt::format("include/{}", header.name), header.text);
  }

  /// The library; none where the compiler refuses the text, with its messages. MachineError when the fault is not the
  /// text's.
  std::optional<std::string> run(std::string_view text, std::string &messages) {
    if (std::optional<std::string> library = compile(text, messages))
      return library;
    if (messages.find("trivial-auto-var-init") != std::string::npos) { // a compiler too old for it
      std::erase(flags, "-ftrivial-auto-var-init=pattern");
      if (std::optional<std::string> library = compile(text, messages))
        return library;
    }
    // With nothing to compile it must succeed, and there must be room for what a compiler writes on its way.
    constexpr size_t kRoom = 4 << 20;
    std::string others;
    if (!compile("", others))
      throw MachineError(
          fmt::format("'{}' compiles nothing here, not even an empty file:\n{}", compiler.program, others));
    work.write("room", std::string(kRoom, ' '));
    return std::nullopt;
  }

private:
  std::optional<std::string> compile(std::string_view text, std::string &messages) {
    work.write("kernel.cu", fmt::format("#line 1 \"{}\"\n{}", kKernelFile, text));
    const std::string include = work.file("include").string();
    const fs::path library = work.file("kernel.so"), object = work.file("kernel.o");
    Arguments command = {compiler.program};
    command.insert(command.end(), flags.begin(), flags.end());
    command.insert(command.end(),
                   {"-fmacro-prefix-map=" + include + "/=", "-I" + include, "-include", "fagen/emulator/prelude.h",
                    "-c", work.file("kernel.cu").string(), "-o", object.string()});
    int status = run(command, messages);
    messages = replaceAll(messages, include + "/", "");
    // Apart, so that the sanitizer's library is not linked, and may not be there: the prelude has what is called.
    if (status == 0)
      status = run({compiler.program, "-shared", "-Wl,-Bsymbolic", object.string(), "-o", library.string(), "-lm"},
                   messages);
    if (status == 0)
      return readFile(library);
    if (messages.empty())
      messages = fmt::format("'{}' ended with status {}", compiler.program, status);
    return std::nullopt;
  }

  /// The exit status; what it says in `messages`.
  int run(const Arguments &command, std::string &messages) {
    const fs::path output = work.file("messages");
    const int status = runProgram(command, output);
    messages = readFile(output).value_or("");
    if (status < 0 || status > kLastStatus)
      throw MachineError(fmt::format("'{}' {}", compiler.program, status < 0 ? "could not be started" : "was killed"));
    return status;
  }

  const Compiler &compiler;
  Arguments flags;
  WorkDirectory work;
};

/// Of all that the library depends on.
std::string keyOf(std::string_view text, const Compiler &compiler, const Arguments &flags) {
  std::vector<std::string_view> parts = {"emulator", compiler.version, text};
  parts.insert(parts.end(), flags.begin(), flags.end());
  for (const EmbeddedHeader &header : embeddedHeaders())
    parts.insert(parts.end(), {header.name, header.text});
  return hashParts(parts);
}

/// MachineError where the compiler or the disk fails; no library, with `error` set, where the text is refused.
std::string compileText(std::string_view text, const std::string &cuPath, std::string &error) {
  const Cache cache = Cache::fromEnvironment("emulator");
  if (!cache.refusal().empty())
    throw MachineError(cache.refusal());
  const Compiler compiler = findCompiler();
  const Arguments flags = compilerFlags();
  const std::string key = keyOf(text, compiler, flags);
  std::string library, messages, why;
  if (cache.read("kernel", key, library))
    return library;
  std::optional<std::string> compiled = Compilation(compiler, flags).run(text, messages);
  if (!compiled) {
    error =
        fmt::format("'{}' does not compile for the emulator:\n{}", cuPath, replaceAll(messages, kKernelFile, cuPath));
    return {};
  }
  if (!cache.write("kernel", key, text, *compiled, why) && !why.empty())
    throw MachineError(why + "; FAGEN_CACHE_DIR names another place");
  return std::move(*compiled);
}

} // namespace

std::string compileKernel(const std::string &cuPath, std::string &error) {
  const std::optional<std::string> text = readFile(cuPath);
  if (!text) {
    error = fmt::format("cannot read '{}'", cuPath);
    return {};
  }
  try {
    return compileText(*text, cuPath, error);
  } catch (const fs::filesystem_error &fault) {
    throw MachineError(fault.what());
  }
}

} // namespace fagen::emulator

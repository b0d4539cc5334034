// fagen: a kernel's library in memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "emulator/emulator.h"

#include "Compile.h"
#include "Engine.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace fagen::emulator {

namespace {

/// A file without a name that holds these bytes. They are those that were compiled or checked, whatever becomes of the
/// cache meanwhile.
int memoryOf(std::string_view bytes) {
  const int memory = memfd_create("fagen-kernel", MFD_CLOEXEC);
  while (memory >= 0 && !bytes.empty()) {
    const ssize_t count = write(memory, bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR)
      break;
    bytes.remove_prefix(count > 0 ? static_cast<size_t>(count) : 0);
  }
  if (memory < 0 || !bytes.empty())
    throw MachineError(fmt::format("cannot keep a kernel in memory: {}", std::strerror(errno)));
  return memory;
}

/// The loader takes a name that it knows for the library that it knows, so the name is one that it does not know: a
/// library of an earlier number may have stayed.
void *load(int memory) {
  constexpr std::string_view kDirectory = "/proc/self/fd";
  std::string name = fmt::format("{}/{}", kDirectory, memory);
  while (void *known = dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD)) {
    dlclose(known);
    name.insert(kDirectory.size(), "/.");
  }
  return dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
}

} // namespace

std::unique_ptr<Module> Module::compile(const std::string &cuPath, std::string &error) {
  const std::string code = compileKernel(cuPath, error);
  if (code.empty())
    return nullptr;
  const int memory = memoryOf(code);
  void *library = load(memory);
  if (!library) {
    close(memory);
    throw MachineError(fmt::format("cannot load the library of '{}': {}", cuPath, dlerror()));
  }
  std::unique_ptr<Module> module(new Module(library, memory, cuPath));
  const auto bind = reinterpret_cast<bool (*)(const device::ptx::Engine *)>(dlsym(library, "fagen_emulator_bind"));
  if (!bind || !bind(&kEngine)) {
    error = fmt::format("'{}' was built for another version of the emulator", cuPath);
    return nullptr;
  }
  return module;
}

Module::Module(void *library, int memory, std::string cuPath)
    : library(library), memory(memory), cuPath(std::move(cuPath)) {}

Module::~Module() {
  dlclose(library);
  close(memory);
}

} // namespace fagen::emulator

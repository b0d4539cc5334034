// fagen: a kernel's library in memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "emulator/emulator.h"

#include "Compile.h"
#include "Engine.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace fagen::emulator {

std::unique_ptr<Module> Module::compile(const std::string &cuPath, std::string &error) {
  const std::filesystem::path path = compileKernel(cuPath, error);
  if (path.empty())
    return nullptr;
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    error = fmt::format("cannot load '{}': {}", path.string(), dlerror());
    return nullptr;
  }
  std::unique_ptr<Module> module(new Module(library, cuPath));
  const auto bind = reinterpret_cast<bool (*)(const device::ptx::Engine *)>(dlsym(library, "fagen_emulator_bind"));
  if (!bind || !bind(&kEngine)) {
    error = fmt::format("'{}' was built for another version of the emulator", path.string());
    return nullptr;
  }
  return module;
}

Module::Module(void *library, std::string cuPath) : library(library), cuPath(std::move(cuPath)) {}

Module::~Module() { dlclose(library); }

} // namespace fagen::emulator

// fagen: the files that may be NVRTC.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace fagen {

/// The value of an environment variable, or null.
using Environment = std::function<const char *(const char *)>;

/// What to load as NVRTC, in order: bare names are for the loader, which also finds what the process has loaded
/// already. FAGEN_NVRTC alone where it is set; else the loader's own, `here` (the directory of the file that holds this
/// code), the wheels of a Python environment (nvidia/*/lib below a directory above `here`, and of VIRTUAL_ENV and
/// CONDA_PREFIX), and toolkits (CUDA_HOME, CUDA_PATH, /usr/local/cuda). Files of Python environments are listed only
/// where they exist.
std::vector<std::string> nvrtcPlaces(const std::filesystem::path &here, const Environment &environment);

/// The directory of the shared library or program that holds this code; empty when the loader does not say.
std::filesystem::path ownDirectory();

} // namespace fagen

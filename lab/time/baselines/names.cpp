// fagen: what a time can be compared with.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "names.h"
#include "lab/cases/problem.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fagen::lab {

static const std::vector<std::string> kSdpa = {"sdpa:flash", "sdpa:cudnn", "sdpa:efficient", "sdpa:math"};
static constexpr std::string_view kKernel = "kernel:";

bool isSdpa(const std::string &name) { return name == "sdpa" || name.starts_with("sdpa:"); }

std::string baselineVariant(const std::string &name) {
  return name.starts_with(kKernel) ? name.substr(kKernel.size()) : "";
}

std::vector<std::string> baselineMembers(const std::string &name) {
  return name == "sdpa" ? kSdpa : std::vector<std::string>{name};
}

void requireBaseline(const std::string &name) {
  if (!baselineVariant(name).empty())
    return;
  std::vector<std::string> known = {"sdpa", "cublas-unfused", "cublas-gemm", "stream"};
  known.insert(known.end(), kSdpa.begin(), kSdpa.end());
  if (std::find(known.begin(), known.end(), name) != known.end())
    return;
  std::string near = nearest(name, known);
  throw UserError(fmt::format("unknown baseline '{}'; {}known: {}, kernel:VARIANT", name,
                              near.empty() ? "" : fmt::format("did you mean '{}'? ", near), fmt::join(known, ", ")));
}

} // namespace fagen::lab

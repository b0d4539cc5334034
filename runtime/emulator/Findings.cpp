// fagen: what a CTA did wrong, one entry for each kind and place.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Findings.h"

#include <cstring>
#include <fmt/format.h>

namespace fagen::emulator {

bool Findings::isKnown(const char *kind, Site site, uint64_t count) {
  for (Entry &entry : entries)
    if (entry.site.line == site.line && !std::strcmp(entry.kind, kind) && !std::strcmp(entry.site.file, site.file)) {
      entry.count += count;
      return true;
    }
  return entries.size() >= limit;
}

void Findings::insert(const char *kind, Site site, std::string message) {
  entries.push_back({kind, site, std::move(message), 1});
}

void Findings::merge(const Findings &other) {
  for (const Entry &entry : other.entries)
    if (!isKnown(entry.kind, entry.site, entry.count))
      entries.push_back(entry);
}

std::vector<Finding> Findings::list(std::string_view compiledName, const std::string &cuPath) const {
  const std::string baseName = cuPath.substr(cuPath.rfind('/') + 1);
  std::vector<Finding> findings;
  for (const Entry &entry : entries) {
    std::string message = entry.message;
    for (size_t at; (at = message.find(compiledName)) != std::string::npos;)
      message.replace(at, compiledName.size(), baseName);
    if (entry.count > 1)
      message += fmt::format(" (the first of {} at this place)", entry.count);
    findings.push_back(
        {entry.kind, message, compiledName == entry.site.file ? cuPath : entry.site.file, entry.site.line});
  }
  return findings;
}

} // namespace fagen::emulator

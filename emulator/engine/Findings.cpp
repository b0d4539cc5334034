// fagen: what a CTA did wrong, one entry for each kind and place.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Findings.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace fagen::emulator {

bool Findings::isKnown(const char *kind, Site site, const Pair &pair, uint64_t count) {
  for (Entry &entry : entries)
    if (entry.site.line == site.line && entry.pair.otherLine == pair.otherLine && !std::strcmp(entry.kind, kind) &&
        !std::strcmp(entry.site.file, site.file)) {
      entry.count += count;
      return true;
    }
  return entries.size() >= limit;
}

void Findings::merge(const Findings &other) {
  for (const Entry &entry : other.entries)
    if (!isKnown(entry.kind, entry.site, entry.pair, entry.count))
      entries.push_back(entry);
}

const LineInfo *infoOf(const std::vector<LineInfo> &lines, int line) {
  for (const LineInfo &info : lines)
    if (info.line == line)
      return &info;
  return nullptr;
}

std::string describe(const LineInfo &info) { return info.spec.empty() ? info.op : info.op + " of " + info.spec; }

std::vector<Finding> Findings::list(std::string_view compiledName, const std::string &cuPath,
                                    const std::vector<LineInfo> &lines) const {
  const std::string baseName = cuPath.substr(cuPath.rfind('/') + 1);
  std::vector<Finding> findings;
  for (const Entry &entry : entries) {
    const bool isKernel = compiledName == entry.site.file;
    Finding finding{entry.kind, entry.message, isKernel ? cuPath : entry.site.file, entry.site.line};
    for (size_t at; (at = finding.message.find(compiledName)) != std::string::npos;)
      finding.message.replace(at, compiledName.size(), baseName);
    finding.otherLine = entry.pair.otherLine;
    finding.thread = entry.pair.thread;
    finding.otherThread = entry.pair.otherThread;
    std::string where; // after the first line of the message; a list below it names its own places
    const bool isList = finding.message.find('\n') != std::string::npos;
    if (const LineInfo *info = isKernel ? infoOf(lines, entry.site.line) : nullptr) {
      finding.op = info->op;
      finding.spec = info->spec;
      if (!isList)
        where += "; this is " + describe(*info);
    }
    if (const LineInfo *info = infoOf(lines, entry.pair.otherLine)) {
      finding.otherOp = info->op;
      finding.otherSpec = info->spec;
      if (!isList)
        where += (where.empty() ? "; the other is " : ", the other ") + describe(*info);
    }
    if (entry.count > 1)
      where += fmt::format(" (the first of {} at this place)", entry.count);
    finding.message.insert(std::min(finding.message.find('\n'), finding.message.size()), where);
    findings.push_back(std::move(finding));
  }
  return findings;
}

} // namespace fagen::emulator

// fagen: what the emitters share.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "EmitterSupport.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace fagen::tblgen {

std::vector<Record *> recordsInOrder(const RecordKeeper &records, StringRef className) {
  std::vector<Record *> result = records.getAllDerivedDefinitions(className);
  llvm::sort(result, [](const Record *a, const Record *b) { return a->getID() < b->getID(); });
  return result;
}

void emitFileHeader(raw_ostream &os, StringRef what, StringRef source) {
  os << "// fagen: " << what << "\n"
     << "// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n"
     << "// Generated from " << source << " by fagen-tblgen. Do not edit.\n";
}

std::string quoted(StringRef text) {
  std::string result = "\"";
  raw_string_ostream os(result);
  os.write_escaped(text);
  return result + "\"";
}

std::string upperCamel(StringRef text) { return convertToCamelFromSnakeCase(text, /*capitalizeFirst=*/true); }

std::string lowerCamel(StringRef text) { return convertToCamelFromSnakeCase(text); }

std::string featureMask(const std::vector<Record *> &features) {
  if (features.empty())
    return "0";
  std::string result;
  for (const Record *feature : features)
    result += (result.empty() ? "" : " | ") + ("featureBit(Feature::" + feature->getName() + ")").str();
  return result;
}

} // namespace fagen::tblgen

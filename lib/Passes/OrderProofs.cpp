// fagen: what was proven of roles, by the text of their kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The proof is a function of the ops, buffers, lets and constants alone, so equal texts have equal proofs: nothing is
// taken on trust. Variants are lowered side by side, hence the lock.

#include "OrderProofs.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

#include <mutex>

using namespace fagen;
using llvm::StringRef;

namespace {

struct Proofs {
  std::mutex mutex;
  llvm::StringMap<std::vector<std::string>> covers;
};

Proofs &proofs() {
  static Proofs instance;
  return instance;
}

/// Without what is only said to people, and without sites.
StringRef essential(StringRef line) {
  if (line.starts_with("kernel @"))
    line = line.drop_front(line.find(" backend "));
  for (const char *saying : {" loc(\"", " note(\"", " origin \"", " site ", " phase "})
    line = line.take_front(line.find(saying));
  return line.starts_with("site ") ? StringRef() : line;
}

} // namespace

std::string fagen::proofKey(const ir::Kernel &kernel) {
  std::string text, key;
  llvm::raw_string_ostream os(text);
  print(kernel, os);
  for (StringRef rest = text; !rest.empty();) {
    auto [first, others] = rest.split('\n');
    rest = others;
    const StringRef line = essential(first.ltrim());
    if (line.empty())
      continue;
    const size_t type = line.find(": bf16[");
    key += type == StringRef::npos ? line : line.take_front(type + 2); // ": "
    key += type == StringRef::npos ? "" : line.drop_front(type + 3);   // "f16["
    key += '\n';
  }
  return key;
}

std::optional<std::vector<std::string>> fagen::findProof(const std::string &key) {
  const std::lock_guard lock(proofs().mutex);
  auto found = proofs().covers.find(key);
  if (found == proofs().covers.end())
    return std::nullopt;
  return found->second;
}

void fagen::keepProof(const std::string &key, std::vector<std::string> covers) {
  const std::lock_guard lock(proofs().mutex);
  proofs().covers[key] = std::move(covers);
}

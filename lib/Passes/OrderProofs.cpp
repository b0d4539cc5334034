// fagen: what was proven of kernels, by their text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The proof is a function of the ops, buffers, lets and constants alone, so equal texts have equal proofs: nothing is
// taken on trust. Variants are lowered side by side, hence the locks.

#include "OrderProofs.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

#include <cstring>

using namespace fagen;
using llvm::StringRef;

namespace {

struct Proofs {
  std::mutex mutex;
  llvm::StringMap<std::unique_ptr<OrderProof>> byKey;
};

Proofs &proofs() {
  static Proofs instance;
  return instance;
}

/// bf16 is f16; and what warps vote on is left out, since a proof takes either outcome to happen.
void appendToKey(std::string &key, StringRef line) {
  const StringRef isFenced = ", fenced = 1}";
  const bool isVote = line.ltrim().starts_with(ir::opInfo(ir::OpKind::Vote).name);
  StringRef rest = isVote ? line.take_front(line.find(" {")) : line;
  for (size_t type = rest.find(": bf16["); type != StringRef::npos; type = rest.find(": bf16[")) {
    key += rest.take_front(type);
    key += ": f16[";
    rest = rest.drop_front(type + strlen(": bf16["));
  }
  key += rest;
  if (isVote && line.contains(isFenced))
    key += isFenced;
  key += '\n';
}

} // namespace

std::string fagen::proofKey(const ir::Kernel &kernel) {
  std::string text, key;
  llvm::raw_string_ostream os(text);
  os.SetBufferSize(1 << 14); // else it takes each piece on its own
  printBare(kernel, os);
  os.flush();
  for (StringRef rest = text; !rest.empty();) {
    const auto [line, behind] = rest.split('\n');
    appendToKey(key, line);
    rest = behind;
  }
  return key;
}

OrderProof &fagen::proofOf(const std::string &key) {
  const std::lock_guard lock(proofs().mutex);
  std::unique_ptr<OrderProof> &proof = proofs().byKey[key];
  if (!proof)
    proof = std::make_unique<OrderProof>();
  return *proof;
}

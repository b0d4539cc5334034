// fagen: what was proven of kernels, by their text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The proof is a function of the ops, buffers, lets and constants alone, so equal texts have equal proofs: nothing is
// taken on trust. Of roles it is one of less: AccessTable says all that sizes and offsets of tiles mean. Variants are
// lowered side by side, hence the locks.

#include "OrderProofs.h"

#include "fagen/Analysis/Order.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

#include <algorithm>

using namespace fagen;
using llvm::isAlnum;
using llvm::isDigit;
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

/// Appends it with f16 for bf16.
void appendAsF16(std::string &key, StringRef text) {
  const StringRef bf16 = ": bf16[";
  for (size_t type = text.find(bf16); type != StringRef::npos; type = text.find(bf16)) {
    key += text.take_front(type);
    key += ": f16[";
    text = text.drop_front(type + bf16.size());
  }
  key += text;
}

/// How long the real number is that the text begins with, as 4.0, 1e+30 or 1.5e-20; 0 where it begins with none.
size_t lengthOfReal(StringRef text) {
  StringRef rest = text.drop_while(isDigit);
  if (rest.size() == text.size())
    return 0;
  const bool hasPoint = rest.consume_front(".");
  if (hasPoint)
    rest = rest.drop_while(isDigit);
  const bool hasPower = !rest.empty() && rest.front() == 'e';
  if (hasPower) {
    rest = rest.drop_front();
    rest = rest.drop_front(rest.starts_with("-") || rest.starts_with("+")).drop_while(isDigit);
  }
  return hasPoint || hasPower ? text.size() - rest.size() : 0;
}

/// Appends it with # for each real number and its sign. They say what elements become; who reads them when, and what
/// the ledger calls the op, says the rest.
void appendWithoutReals(std::string &key, StringRef text) {
  bool isInWord = false; // a digit there begins no number
  while (!text.empty()) {
    const size_t length = isInWord ? 0 : lengthOfReal(text);
    if (length == 0) {
      isInWord = isAlnum(text.front()) || text.front() == '_';
      key += text.front();
      text = text.drop_front();
      continue;
    }
    if (key.back() == '-')
      key.pop_back();
    key += '#';
    text = text.drop_front(length);
  }
}

/// What warps vote on is left out, since a proof takes either outcome to happen.
void appendToKey(std::string &key, StringRef line) {
  const StringRef isFenced = ", fenced = 1}";
  const StringRef op = line.ltrim().take_until([](char c) { return c == ' '; });
  if (op == ir::opInfo(ir::OpKind::Vote).name) {
    key += line.take_front(line.find(" {"));
    if (line.contains(isFenced))
      key += isFenced;
  } else if (op == ir::opInfo(ir::OpKind::Map).name) {
    appendWithoutReals(key, line);
  } else {
    appendAsF16(key, line);
  }
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

static bool isBuffer(StringRef line) {
  return line.starts_with("shared %") || line.starts_with("fragment %") || line.starts_with("global %");
}

/// Without the number after each of these words.
static std::string withoutNumbersBehind(StringRef text, StringRef word) {
  std::string rest;
  for (size_t at = text.find(word); at != StringRef::npos; at = text.find(word)) {
    rest += text.take_front(at + word.size());
    text = text.drop_front(at + word.size()).drop_while(isDigit);
  }
  return rest + text.str();
}

/// Whether the text has the word as a word.
static bool hasWord(StringRef text, StringRef word) {
  auto isOfWord = [](char c) { return isAlnum(c) || c == '_'; };
  for (size_t at = text.find(word); at != StringRef::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !isOfWord(text[at - 1])) && (end == text.size() || !isOfWord(text[end])))
      return true;
  }
  return false;
}

/// The key without what only says how large tiles are, and where they lie: shapes of buffers, and their constants where
/// nothing else names them; offsets; bytes that are announced.
static std::string withoutSizes(StringRef key) {
  std::string others; // than constants
  llvm::SmallVector<StringRef, 32> constants;
  for (StringRef rest = key; !rest.empty();) {
    const auto [line, behind] = rest.split('\n');
    rest = behind;
    const StringRef text = line.ltrim();
    if (text.starts_with("const "))
      constants.push_back(text.drop_front(6));
    else if (const size_t shape = text.find('['); isBuffer(text))
      others +=
          (text.take_front(shape) + withoutNumbersBehind(text.drop_front(text.find(']', shape)), " offset ") + "\n")
              .str();
    else if (text.starts_with("kernel "))
      others += withoutNumbersBehind(text, " shared ") + '\n';
    else
      others += withoutNumbersBehind(text, "bytes = ") + '\n';
  }
  for (const StringRef constant : constants)
    if (hasWord(others, constant.split(' ').first))
      others += (constant + "\n").str();
  return others;
}

std::string fagen::proofKeyOfRoles(const ir::Kernel &kernel, StringRef key) {
  return withoutSizes(key) + sizesSeenBetweenRoles(kernel);
}

OrderProof &fagen::proofOf(const std::string &key) {
  const std::lock_guard lock(proofs().mutex);
  std::unique_ptr<OrderProof> &proof = proofs().byKey[key];
  if (!proof)
    proof = std::make_unique<OrderProof>();
  return *proof;
}

OrderProof &fagen::proofOfRoles(const ir::Kernel &kernel) {
  const std::string key = proofKey(kernel);
  OrderProof &proof = proofOf(key);
  const std::lock_guard lock(proof.mutex);
  if (!proof.ofRoles)
    proof.ofRoles = &proofOf(proofKeyOfRoles(kernel, key));
  return *proof.ofRoles;
}

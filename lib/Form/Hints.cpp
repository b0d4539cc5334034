// fagen: what was probably meant by a name or function that forms do not have.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Hints.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace fagen::form {

namespace {

struct Hint {
  ArrayRef<StringRef> words;
  StringRef text;
};

} // namespace

static StringRef hintFor(ArrayRef<Hint> hints, StringRef word) {
  for (const Hint &hint : hints)
    if (any_of(hint.words, [&](StringRef known) { return known.equals_insensitive(word); }))
      return hint.text;
  return "";
}

StringRef hintForName(StringRef word) {
  static constexpr StringRef kTruths[] = {"true", "false"}, kScores[] = {"score", "qk", "logit", "logits", "dot"},
                             kScales[] = {"scale", "softmax_scale", "sm_scale"},
                             kQueries[] = {"query", "q_idx", "q_index", "i", "row", "m"},
                             kKeys[] = {"key", "kv", "kv_idx", "k_idx", "k_index", "j", "col", "column", "n"},
                             kHeads[] = {"head", "head_idx"}, kKvHeads[] = {"kv_head", "head_kv", "hkv"},
                             kBatches[] = {"batch_idx", "bidx"},
                             kLengths[] = {"seq", "seq_len", "seqlen", "seq_k", "seqlen_q", "seqlen_k", "length"},
                             kDims[] = {"head_dim", "d", "dim"};
  static constexpr Hint kHints[] = {
      {kTruths, "a comparison is a truth value; without a mask every key is seen"},
      {kScores, "the score is s"},
      {kScales, "s is multiplied by the call's scale already"},
      {kQueries, "the query is q, and p its place among the keys"},
      {kKeys, "the key is k"},
      {kHeads, "the query head is h"},
      {kKvHeads, "the head of K and V is hk"},
      {kBatches, "the batch is b"},
      {kLengths, "the lengths are seq_q and seq_kv"},
      {kDims, "a form does not see head dims; a param can say one"},
  };
  return hintFor(kHints, word);
}

StringRef hintForFunction(StringRef word) {
  static constexpr StringRef kPowers[] = {"pow", "power", "square"}, kChoices[] = {"where", "select", "if", "ite"},
                             kRounds[] = {"floor", "ceil", "round", "trunc", "int", "rint"},
                             kRemainders[] = {"mod", "fmod", "rem", "remainder"}, kReals[] = {"float", "f16", "bf16"},
                             kSigmoids[] = {"sigmoid", "logistic", "silu"}, kRelus[] = {"relu"}, kRoots[] = {"rsqrt"},
                             kQuotients[] = {"div", "idiv", "ceil_div"}, kLogs[] = {"ln", "log10", "log1p"};
  static constexpr Hint kHints[] = {
      {kPowers, "a power is written x * x, or exp2(y * log2(x))"},
      {kChoices, "a choice is written condition ? a : b"},
      {kRounds, "i32(x) rounds towards zero, and floor_div(a, b) of integers down"},
      {kRemainders, "of integers there is floor_mod(a, b)"},
      {kReals, "f32(x) makes a real number of an integer"},
      {kSigmoids, "it is written with exp: 1 / (1 + exp(-x))"},
      {kRelus, "it is written max(x, 0)"},
      {kRoots, "it is written 1 / sqrt(x)"},
      {kQuotients, "of integers there is floor_div(a, b); real numbers take /"},
      {kLogs, "log(x) is the natural logarithm, log2(x) that of base 2"},
  };
  return hintFor(kHints, word);
}

} // namespace fagen::form

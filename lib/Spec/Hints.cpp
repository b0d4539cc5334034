// fagen: what was probably meant by a word that specs do not have.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Hints.h"

#include "fagen/Support/Suggest.h"
#include "fagen/Target/GpuNames.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <fmt/format.h>

using namespace llvm;

namespace fagen {

namespace {

struct Hint {
  ArrayRef<StringRef> words;
  StringRef text;
};

struct ValueHint {
  OptionKey key;
  ArrayRef<StringRef> words;
  StringRef text;
};

} // namespace

static bool matches(ArrayRef<StringRef> words, StringRef word) {
  return any_of(words, [&](StringRef known) { return known.equals_insensitive(word); });
}

StringRef hintForKey(StringRef word) {
  static constexpr StringRef kCounts[] = {"batch",    "batch_size", "heads", "num_heads", "n_heads",     "q_heads",
                                          "kv_heads", "heads_kv",   "h",     "hkv",       "num_kv_heads"},
                             kLengths[] = {"seq", "seq_len", "seqlen",   "seq_q",    "seq_kv", "seq_k",      "sq",
                                           "sk",  "skv",     "seqlen_q", "seqlen_k", "length", "max_seq_len"},
                             kScales[] = {"scale", "softmax_scale", "sm_scale", "scaling"},
                             kCausal[] = {"causal", "is_causal"},
                             kForms[] = {"window", "window_size", "sliding_window", "softcap",   "soft_cap",
                                         "alibi",  "bias",        "attn_mask",      "score_mod", "mask_mod",
                                         "sink",   "sinks",       "document",       "prefix"},
                             kDropout[] = {"dropout", "dropout_p"}, kTypes[] = {"type", "precision", "data_type"},
                             kDims[] = {"d", "dim", "head_size", "head_dims"},
                             kTiles[] = {"block",   "blocks",   "block_m",    "block_n", "block_q",
                                         "block_k", "block_kv", "block_size", "tile_m",  "tile_n",
                                         "tile_q",  "tile_k",   "tile_size",  "br",      "bc"},
                             kWarps[] = {"num_warps", "nwarps", "threads", "num_threads"},
                             kStages[] = {"num_stages", "pipeline", "pipeline_stages", "depth"},
                             kInstruction[] = {"instruction", "tensor_cores", "instr", "use_mma"},
                             kSplits[] = {"splits", "num_splits", "split_k", "split_kv"},
                             kGates[] = {"registers", "maxregs", "max_registers", "spills", "ctas",
                                         "shared",    "error",   "time",          "joules"},
                             kArch[] = {"gpu", "arch", "target"},
                             kPersistent[] = {"persistent", "persist", "persistent_kernel"},
                             kSpecialized[] = {"warp_specialized", "specialized", "warp_specialization", "producer"};
  static constexpr Hint kHints[] = {
      {kCounts, "it is given with each call, and select can ask for batch, heads and kv_heads"},
      {kLengths, "it is given with each call, and select can ask for seq_q and seq_kv"},
      {kScales, "it is given with each call; where a call gives none it is 1 / sqrt(head_dim)"},
      {kCausal, "say mask = causal"},
      {kForms, "a form says it: form NAME { ... } before the kernel, and form = NAME in problem"},
      {kDropout, "fagen has no dropout"},
      {kTypes, "say dtype"},
      {kDims, "say head_dim"},
      {kTiles, "say tile = rows x keys"},
      {kWarps, "say warps; a warp has 32 threads"},
      {kStages, "say stages"},
      {kInstruction, "say mma"},
      {kSplits, "say split"},
      {kGates, "it is a gate: require { ... } in the kernel"},
      {kArch, "the file begins with it: target sm_89;"},
      {kPersistent, "say grid = persistent"},
      {kSpecialized, "say roles = specialized"},
  };
  const auto *found = find_if(kHints, [&](const Hint &hint) { return matches(hint.words, word); });
  return found == std::end(kHints) ? "" : found->text;
}

StringRef hintForValue(OptionKey key, StringRef word) {
  static constexpr StringRef kHalf[] = {"half", "float16", "fp16"}, kBrain[] = {"bfloat16", "bfloat"},
                             kSingle[] = {"float", "float32", "fp32", "f32", "single"},
                             kEight[] = {"fp8", "float8", "e5m2", "int8", "f8", "float8_e4m3"},
                             kAll[] = {"full", "all", "no", "off", "false", "bidirectional", "null"},
                             kLower[] = {"true", "lower", "tril", "triangular"},
                             kForms[] = {"sliding_window", "sliding", "window",    "local",  "swa",
                                         "alibi",          "softcap", "prefix_lm", "prefix", "document",
                                         "block",          "dilated", "chunked",   "bias",   "custom"},
                             kShipped[] = {"window",  "local",     "softcap", "gemma2",      "alibi",
                                           "sink",    "gpt_oss",   "bias",    "prefix",      "documents",
                                           "blocks",  "streaming", "dilated", "temperature", "same_document",
                                           "chunked", "visible",   "rows",    "bias_visible"},
                             kOn[] = {"true", "yes", "1"}, kOff[] = {"false", "no", "0", "none"},
                             kMma[] = {"mma", "tensor", "hmma", "mma.sync", "tensor_core", "tensor_cores"},
                             kGroup[] = {"gmma", "warpgroup", "hopper"}, kFma[] = {"cuda_core", "simt", "ffma"},
                             kBulk[] = {"bulk", "tma_load"}, kAsync[] = {"async", "cp.async"};
  static constexpr ValueHint kHints[] = {
      {OptionKey::DType, kHalf, "did you mean 'f16'?"},
      {OptionKey::DType, kBrain, "did you mean 'bf16'?"},
      {OptionKey::DType, kSingle, "Q, K, V and O are f16 or bf16; sums are f32"},
      {OptionKey::DType, kEight, "8-bit types are not yet supported; it is f16 or bf16"},
      {OptionKey::Accum, kHalf, "did you mean 'f16'?"},
      {OptionKey::Accum, kSingle, "did you mean 'f32'?"},
      {OptionKey::Mask, kAll, "did you mean 'none'?"},
      {OptionKey::Mask, kLower, "did you mean 'causal'?"},
      {OptionKey::Mask, kForms, "it is none, causal or a form that the file declares: form NAME { ... }"},
      {OptionKey::Lse, kOn, "did you mean 'on'?"},
      {OptionKey::Lse, kOff, "did you mean 'off'?"},
      {OptionKey::Invariant, kOn, "did you mean 'on'?"},
      {OptionKey::Invariant, kOff, "did you mean 'off'?"},
      {OptionKey::Mma, kMma, "did you mean 'mma_sync'?"},
      {OptionKey::Mma, kGroup, "did you mean 'wgmma'?"},
      {OptionKey::Mma, kFma, "did you mean 'scalar'?"},
      {OptionKey::Copy, kBulk, "did you mean 'tma'?"},
      {OptionKey::Copy, kAsync, "did you mean 'cp_async'?"},
  };
  if (key == OptionKey::Mask && is_contained(kShipped, word))
    return "this file does not declare it; specs/forms.fa has a form of this name: copy it here, before the kernel";
  const auto *found =
      find_if(kHints, [&](const ValueHint &hint) { return hint.key == key && matches(hint.words, word); });
  return found == std::end(kHints) ? "" : found->text;
}

/// 75 of "sm_75", "sm75" and "compute_75"; 0 of what is no such word, or has a digit alone.
static unsigned computeCapability(StringRef word) {
  unsigned number = 0;
  for (StringRef prefix : {"sm_", "sm", "compute_"})
    if (StringRef rest = word; rest.consume_front_insensitive(prefix) && !rest.rtrim("aAfF").getAsInteger(10, number))
      return number < 10 ? 0 : number;
  return 0;
}

std::string hintForTarget(StringRef word) {
  unsigned sm = computeCapability(word);
  std::string who = word.str();
  if (const std::optional<NamedGpu> gpu = sm == 0 ? gpuNamed(word.lower()) : std::nullopt) {
    sm = gpu->sm;
    who = gpu->name;
  }
  if (sm == 0)
    return "";
  const TargetInfo *runs = nullptr; // in the order of compute capabilities: the last is the nearest to the GPU
  for (const TargetInfo &target : allTargets())
    if (target.runsOn(sm) && computeCapability(target.name) <= sm)
      runs = &target;
  if (!runs)
    return fmt::format("it is older than what fagen has kernels for; the oldest is {}",
                       allTargets().front().name.str());
  return fmt::format("{} runs the kernels of {}", who, runs->name.str());
}

std::string describeValues(const OptionInfo &option, const TargetInfo *target) {
  switch (option.type) {
  case OptionType::Enum: {
    std::vector<StringRef> texts;
    for (const OptionValueInfo &value : option.values)
      if (!value.notYet && (!target || target->hasAll(value.needs)))
        texts.push_back(value.text);
    return alternatives(texts);
  }
  case OptionType::Switch:
    return "on or off";
  case OptionType::Integer:
    return fmt::format("{}an integer from {} to {}", option.takesAuto ? "auto or " : "", option.min, option.max);
  case OptionType::Bytes: {
    std::vector<std::string> texts;
    for (unsigned bytes : option.allowed)
      texts.push_back(fmt::format("{} B", bytes));
    const std::vector<StringRef> views(texts.begin(), texts.end());
    return alternatives(views);
  }
  case OptionType::HeadDim:
    return fmt::format("one integer, or QK : V, multiples of {} from {} to {}", option.multipleOf, option.min,
                       option.max);
  case OptionType::Tile:
    return fmt::format("rows x keys, each from {} to {}: 128 x 64", option.min, option.max);
  }
  return "";
}

} // namespace fagen

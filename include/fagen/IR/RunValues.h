// fagen: the values that expressions name without a declaration.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention's parameters (fagen/device/params.h), what a CTA knows of its place among the tiles, and the place of an
// element. This is the only list of them: the verifier lets through what stands here, passes and analyses ask what a
// value is, and the emitter where generated text finds it.
#pragma once

#include "fagen/IR/Expr.h"

#include <array>

namespace fagen::ir {

enum class RunValue : uint8_t {
  Batch,
  BatchIndex,
  Head,
  KvHead,
  Heads,
  KvHeads,
  HeadsPerKv,
  RowBegin,
  GroupRow,
  KeyBegin,
  SeqQ,
  SeqKv,
  Split,
  SplitBegin,
  SplitKeys,
  TilesOfCta,
  Scale,
  ScaleLog2,
  ElementRow,
  ElementKey
};

/// Where a value is one and the same.
enum class RunScope : uint8_t {
  Launch, ///< a parameter
  Tile,   ///< of query rows
  Split,  ///< CTAs that share a tile have each a part of the keys
  Cta,
  Group, ///< of four warps
  Element
};

/// What it counts or measures.
enum class RunKind : uint8_t {
  Index,
  Length,  ///< rows of a tensor
  Count,   ///< of heads: positive wherever a CTA runs
  Divisor, ///< a count whose reciprocal is a parameter, too
  Real
};

struct RunValueInfo {
  RunValue value;
  llvm::StringLiteral name;
  RunScope scope;
  RunKind kind = RunKind::Index;
};

inline constexpr std::array kRunValues = {
    RunValueInfo{RunValue::Batch, "batch", RunScope::Launch},
    RunValueInfo{RunValue::BatchIndex, "batch_index", RunScope::Tile},
    RunValueInfo{RunValue::Head, "head", RunScope::Tile},
    RunValueInfo{RunValue::KvHead, "kv_head", RunScope::Tile},
    RunValueInfo{RunValue::Heads, "heads", RunScope::Launch, RunKind::Count},
    RunValueInfo{RunValue::KvHeads, "kv_heads", RunScope::Launch, RunKind::Count},
    RunValueInfo{RunValue::HeadsPerKv, "heads_per_kv", RunScope::Launch, RunKind::Divisor},
    RunValueInfo{RunValue::RowBegin, "row_begin", RunScope::Tile},  // its first row
    RunValueInfo{RunValue::GroupRow, "group_row", RunScope::Group}, // the group's first row in the tile
    RunValueInfo{RunValue::KeyBegin, "key_begin", RunScope::Tile},  // first key, where a warp has a key tile (KeyTiles)
    RunValueInfo{RunValue::SeqQ, "seq_q", RunScope::Launch, RunKind::Length},
    RunValueInfo{RunValue::SeqKv, "seq_kv", RunScope::Launch, RunKind::Length},
    RunValueInfo{RunValue::Split, "split", RunScope::Split},
    RunValueInfo{RunValue::SplitBegin, "split_begin", RunScope::Split}, // its first key
    RunValueInfo{RunValue::SplitKeys, "split_keys", RunScope::Split},   // how many keys it has
    RunValueInfo{RunValue::TilesOfCta, "tiles_of_cta", RunScope::Cta},
    RunValueInfo{RunValue::Scale, "scale", RunScope::Launch, RunKind::Real},          // of scores
    RunValueInfo{RunValue::ScaleLog2, "scale_log2", RunScope::Launch, RunKind::Real}, // that times log2(e)
    RunValueInfo{RunValue::ElementRow, "q", RunScope::Element},
    RunValueInfo{RunValue::ElementKey, "k", RunScope::Element},
};

constexpr const RunValueInfo &infoOf(RunValue value) { return kRunValues[size_t(value)]; }
constexpr llvm::StringRef nameOf(RunValue value) { return infoOf(value).name; }
inline Expr variable(RunValue value) { return Expr::variable(nameOf(value)); }

inline bool isIntegerOfRun(const RunValueInfo &info) {
  return info.scope != RunScope::Element && info.kind != RunKind::Real;
}
/// The value of that name; null where it is another's.
inline const RunValueInfo *findRunValue(llvm::StringRef name) {
  for (const RunValueInfo &info : kRunValues)
    if (info.name == name)
      return &info;
  return nullptr;
}
/// Whether it is that of an integer of the run, which lets and loops may not hide. Places of elements and real numbers
/// stand in maps alone.
inline bool isIntegerOfRun(llvm::StringRef name) {
  const RunValueInfo *const info = findRunValue(name);
  return info && isIntegerOfRun(*info);
}
inline bool isRunValue(llvm::StringRef name, RunValue value) { return name == nameOf(value); }

/// Whether kernels with parameters of their own have it, too.
inline bool isOfEveryKernel(const RunValueInfo &info) {
  return info.scope == RunScope::Cta || info.scope == RunScope::Group;
}
/// Whether the expression names a value of that scope.
inline bool usesScope(const Expr &expr, RunScope scope) {
  bool found = false;
  expr.forEachVariable([&](llvm::StringRef name) {
    const RunValueInfo *const info = findRunValue(name);
    found |= info && info->scope == scope;
  });
  return found;
}

} // namespace fagen::ir

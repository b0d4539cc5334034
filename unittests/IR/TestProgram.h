// fagen: a program with one of everything, and helpers that read and print.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"
#include "fagen/IR/Verifier.h"
#include "fagen/Support/Diagnostics.h"

#include "llvm/Support/MemoryBuffer.h"

namespace fagen::ir {

inline constexpr llvm::StringLiteral kTestProgram = R"(program @p {
  kernel @fagen_p_sm_89 target sm_89 backend mma_sync threads 128 phase placed shared 34816 loc("a.fa":4:8) {
    const kTileRows = 64 origin "tile" loc("a.fa":17:16)
    const kTileKeys = 64 origin "tile"
    const kHeadDimQK = 64
    const kHeadDimV = 64
    const kStages = 2
    const kWarps = 4
    const kThreads = 128
    const kRowWarps = 4
    const kKeyWarps = 1
    const kWarpRows = 16
    const kWarpKeys = 64
    const kVectorBytes = 16
    options {refill = late loc("a.fa":18:3), overlap = both, grid = longest_first, load_warps = 4, barriers = minimal}
    global %gk : f16[rows x 64]
    global %go : f16[rows x 64]
    global %glse : f32[rows x 1]
    shared %k : f16[kTileKeys x 64] stages kStages swizzle xor offset 0 guard full %k_full by bytes, empty %k_empty by group lag 1 loc("a.fa":21)
    shared %k_full : mbarrier[1 x 1] stages 2 offset 33280
    shared %k_empty : mbarrier[1 x 1] stages 1 offset 33296
    shared %q : f16[64 x 64] offset 0 overlays %k
    shared %partial : f32[64 x 66] offset 16384
    fragment %q_fragment : f16[16 x 64]
    fragment %s : f32[kWarpRows x kWarpKeys]
    fragment %m : f32[16 x 1]
    let key_tiles = ceil_div(min(seq_kv, row_begin + 64 + seq_kv - seq_q), kTileKeys) note("split: \22why\22 \\")
    site 1 "copy_wait 2" covers "RAW k: copy_issue -> mma"
    site 2 "barrier" covers "WAR k"
    role all warps 0 to 4 {
      copy_issue %k[0], %gk {kind = "cp_async", row = 0, limit = seq_kv}
      loop j = 0 to key_tiles name "edge" {
        copy_wait {pending = 2} site 1 loc("a.fa":20:5) note("K(j) has arrived")
        mma %s, %q_fragment, %k[j] {form = "abt", accumulate = 0}
        map %s {value = k < seq_kv && k <= q + seq_kv - seq_q ? %s : -inf, row = row_begin, key = j * kTileKeys}
        if j + 1 < key_tiles {
          barrier {scope = "named", id = 1, first_warp = 0, warps = 4} site 2
          copy_issue %k[j + 1], %gk {kind = "cp_async", row = (j + 1) * 64, limit = seq_kv, when = j + 1 < key_tiles}
        }
      }
      store_merged %go, none, %partial {row = row_begin, limit = seq_q}
      store_merged %go, %glse, %partial {row = row_begin, limit = seq_q}
      reduce %m, %s {op = "max", reach = "row"}
    }
  }
}
)";

/// A program read from text; errors are kept as text.
struct ReadResult {
  llvm::SourceMgr sources;
  std::unique_ptr<Program> program;
  std::string errors;
};

inline void read(llvm::StringRef text, ReadResult &result) {
  llvm::raw_string_ostream os(result.errors);
  Diagnostics diags(result.sources, os);
  const unsigned buffer =
      result.sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, "test.fair"), llvm::SMLoc());
  result.program = parseProgram(buffer, diags);
}

inline std::string printed(const Program &program) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(program, os);
  return text;
}

inline std::string defects(const Program &program) {
  std::string text;
  verify(program, [&](const Location &, const llvm::Twine &message) { text += message.str() + "\n"; });
  return text;
}

} // namespace fagen::ir

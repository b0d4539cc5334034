// fagen: pass print-tile-mutants: shifts each copy and use of a ring, and lists what the proof says.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Needs final barriers. Changes nothing. One line a mutant: the op, what is shifted and by how much, and why
// verify-barriers refuses it, or that it accepts it:
//
//   tile mutants of @fagen_k_sm_89: 24, of which 24 are refused and 0 the same
//     copy_issue@9 %k positions +2: wrong tile: mma@12: reads position 0 of %k, which nothing has written

#include "fagen/Passes/Passes.h"

#include "fagen/Analysis/TileMutants.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;

bool fagen::printTileMutants(ir::Kernel &kernel, PassContext &context) {
  llvm::raw_ostream &os = context.listing ? *context.listing : llvm::outs();
  const std::vector<TileMutant> mutants = judgeTileMutants(kernel);
  auto count = [&](TileMutant::Verdict verdict) {
    return llvm::count_if(mutants, [&](const TileMutant &mutant) { return mutant.verdict == verdict; });
  };
  os << "tile mutants of @" << kernel.symbol << ": " << mutants.size() << ", of which "
     << count(TileMutant::Verdict::WrongTile) + count(TileMutant::Verdict::OutOfOrder) << " are refused and "
     << count(TileMutant::Verdict::Same) << " the same\n";
  for (const TileMutant &mutant : mutants) {
    os << "  " << mutant.op << " %" << mutant.buffer << ' ' << toString(mutant.change) << ' '
       << (mutant.by > 0 ? "+" : "") << mutant.by << ": " << toString(mutant.verdict);
    os << (mutant.why.empty() ? "" : ": ") << mutant.why << '\n';
  }
  return false;
}

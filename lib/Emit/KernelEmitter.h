// fagen: the text of a kernel; its functions stand in three files.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   KernelEmitter.cpp   the order of the file, its head, constants
//   KernelStorage.cpp   what lies in shared memory and registers, what threads of a CTA share
//   KernelEntry.cpp     the functions in the order in which they run: roles, steps, the entry
#pragma once

#include "OpEmitter.h"
#include "TileUses.h"

#include "fagen/Emit/Kernel.h"
#include "fagen/IR/ExprAnalysis.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

#include <utility>

namespace fagen {

/// Of a shared tile in the head's map, and as the device library's Swizzle.
struct LayoutText {
  llvm::StringRef description, enumerator;
};
LayoutText layoutText(ir::Layout layout);

/// "key_tile": KeyTile.
std::string typeName(llvm::StringRef buffer);

/// The first op of a role that loads which its first thread cannot do: behind two barriers of all of them, or of
/// another kind. Null where there is none.
const ir::Op *findBeyondOneThread(const ir::Role &load);

/// Lines with trailing comments, the comments one below the other.
void printAligned(IndentedStream &out, llvm::ArrayRef<std::pair<std::string, std::string>> lines);

/// The body of a role cut at its loops: what runs before, the steps, what runs after.
struct Sections {
  struct Steps {
    const ir::Op *loop;
    std::vector<const ir::Op *> before; ///< what runs between the loop before and this one
  };
  std::vector<const ir::Op *> prologue;
  std::vector<Steps> loops;
  std::vector<const ir::Op *> epilogue;
  std::vector<const ir::Op *> handover; ///< of the next tile's number; empty where nobody hands it over

  explicit Sections(const ir::Block &body) {
    for (const std::unique_ptr<ir::Op> &op : body.ops) {
      if (op->kind == ir::OpKind::Loop)
        loops.push_back({op.get(), std::exchange(epilogue, {})});
      else
        (loops.empty() ? prologue : epilogue).push_back(op.get());
    }
    auto take = llvm::find_if(epilogue, [](const ir::Op *op) { return op->kind == ir::OpKind::TakeTile; });
    if (take == epilogue.end())
      return;
    handover.assign(take - 1, epilogue.end()); // from its wait on
    epilogue.erase(take - 1, epilogue.end());
  }
};

class KernelEmitter {
public:
  KernelEmitter(const ir::Kernel &kernel, Instrument instrument, const ir::Kernel *combine)
      : kernel(kernel), instrument(instrument), combine(combine), load(findLoader(kernel)), math(kernel.roles.back()),
        turns(findTurns(math.body)), sections(turns ? turns->body : math.body), points(math), stream(text.source),
        out(stream) {
    stream.SetBufferSize(size_t(1) << 14); // else it takes each piece on its own
  }

  KernelText run();

private:
  /// The role that loads for another; null where every warp loads.
  static const ir::Role *findLoader(const ir::Kernel &kernel) {
    return kernel.roles.size() > 1 ? &kernel.roles.front() : nullptr;
  }

  /// The loop over the tiles of query rows of a CTA; null where it has one.
  static const ir::Op *findTurns(const ir::Block &body) {
    auto found = llvm::find_if(body.ops, [](const std::unique_ptr<ir::Op> &op) { return op->has("carry"); });
    return found == body.ops.end() ? nullptr : found->get();
  }

  void emitHead();
  void emitSharedMap();
  void emitIncludes();
  void emitConstants();
  void emitTileTypes();
  void emitStorage();
  void emitCta();
  void emitRegisters();
  std::vector<ir::Let> letsOfTile() const;
  void emitLets();
  void emitCtaAt();
  void emitTurns(llvm::StringRef group, llvm::function_ref<void()> body);
  void emitLoad();
  void emitCopies(OpEmitter &emitter, llvm::ArrayRef<const ir::Op *> ops, const std::string &params);
  void emitRoles();
  void emitFunction(llvm::StringRef name, llvm::StringRef summary, llvm::StringRef parameters,
                    llvm::ArrayRef<const ir::Op *> ops, bool isEpilogue = false, bool isSampled = false);
  void emitStep(const ir::Op &loop);
  static std::string nameOfBefore(const ir::Op &loop) { return ("before_" + loop.text("name")).str(); }
  void emitLoops();
  void emitEntry();
  void emitEntryOfOneTile();
  void emitPersistentEntry();
  void emitCombine();
  std::string expressionOf(const ir::Expr &value);
  std::string fragmentType(const ir::Buffer &buffer) const;
  std::string letValue(const ir::Expr &value) const;
  bool runsAtMostOnce(const ir::Op &loop) const;
  bool isSampled(const ir::Op &loop) const;
  std::vector<const ir::Buffer *> buffersIn(ir::Space space) const;
  std::vector<const ir::Buffer *> runningRings() const;
  ir::ElementType elementType() const;
  bool isSplit() const { return kernel.grid.isSplit(); }
  const char *placeType() const { return isSplit() ? "SplitPlace" : "CtaPlace"; }
  std::string locate() const;
  bool isInstrumented() const { return instrument != Instrument::None; }
  /// The arguments of the clocks' templates.
  std::string clockArguments() const;
  std::string tileArguments() const;
  void emitFirstSources();

  const ir::Kernel &kernel;
  const TileUses uses{kernel};
  const Instrument instrument;
  const ir::Kernel *const combine; ///< the second launch, if there is one
  const ir::Role *const load;      ///< null where every warp loads
  const ir::Role &math;
  const ir::Op *const turns; ///< null where a CTA has one tile of query rows
  const Sections sections;   ///< of math, of one tile
  const Points points;
  KernelText text;
  llvm::raw_string_ostream stream;
  IndentedStream out;
};

} // namespace fagen

// fagen: the text of a kernel; its functions stand in three files.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   KernelEmitter.cpp   the order of the file, its head, constants
//   KernelStorage.cpp   what lies in shared memory and registers, what threads of a CTA share
//   KernelEntry.cpp     the functions in the order in which they run: roles, steps, the entry
#pragma once

#include "OpEmitter.h"

#include "fagen/Emit/Kernel.h"
#include "fagen/IR/Queries.h"
#include "fagen/Target/MmaInstrs.h"

#include "llvm/ADT/STLExtras.h"

#include <set>
#include <utility>

namespace fagen {

/// Of a shared tile in the head's map, and as the device library's Swizzle.
struct LayoutText {
  llvm::StringRef description, enumerator;
};
LayoutText layoutText(ir::Layout layout);

/// As CUDA spells the type.
llvm::StringRef spellType(ir::ElementType type);

/// No tile: what roles tell each other.
bool isHandedOver(const ir::Buffer &buffer);
/// "KTile k[kStages];": of the struct of shared memory.
std::string memberOf(const ir::Buffer &buffer);
inline std::string clusterDims(const ir::Kernel &kernel) {
  return kernel.grid.hasClusters() ? "__cluster_dims__(" + clusterOf(kernel) + ", 1, 1) " : "";
}
/// The struct of shared memory, whose members stand in the order of allocation, so that its size proves their offsets.
/// What is of the ring lies in one of type `ringType`, which others may overlay.
void emitStorage(IndentedStream &out, const ir::Kernel &kernel, llvm::ArrayRef<const ir::Buffer *> shared,
                 llvm::StringRef ringType, llvm::function_ref<bool(const ir::Buffer &)> isOfRing);
/// The types of shared tiles, whose elements `spell` names.
void emitTileTypes(IndentedStream &out, llvm::ArrayRef<const ir::Buffer *> shared,
                   llvm::function_ref<llvm::StringRef(ir::ElementType)> spell);

/// What a thread keeps of a fragment, as the device library calls it, with elements of operands spelled so.
std::string fragmentType(const MmaFamilyInfo &family, const ir::Buffer &buffer, llvm::StringRef element);

/// The first op of a role that loads which its first thread cannot do: one after two barriers of all of them, or of
/// another kind. Null where there is none.
const ir::Op *findBeyondOneThread(const ir::Role &load);

/// Comments: what lies where in shared memory, who runs what, and what orders them.
void emitMap(IndentedStream &out, const ir::Kernel &kernel);

/// What the device library has of what the kernel's ops become, by header; and the fragments that the text names.
void addHeadersOfOps(const ir::Kernel &kernel, std::set<llvm::StringRef> &headers,
                     llvm::DenseSet<const ir::Buffer *> *registers = nullptr);
void emitIncludes(IndentedStream &out, const std::set<llvm::StringRef> &headers);

/// Gives the text, at `begin`, the constants that it names from there to `end`.
void insertConstants(KernelText &text, const ir::Kernel &kernel, size_t begin, size_t end = llvm::StringRef::npos);

/// Lines with trailing comments, the comments one below the other.
void printAligned(IndentedStream &out, llvm::ArrayRef<std::pair<std::string, std::string>> lines);

/// The body of a role cut at its loops: what runs before, the steps, what runs after.
struct Sections {
  struct Steps {
    ir::LoopOp<const ir::Op> loop;
    std::vector<const ir::Op *> before; ///< what runs between the loop before and this one
  };
  std::vector<const ir::Op *> prologue;
  std::vector<Steps> loops;
  std::vector<const ir::Op *> epilogue;
  std::vector<const ir::Op *> handover; ///< of the next tile's number; empty where nobody hands it over

  explicit Sections(const ir::Block &body) {
    for (const std::unique_ptr<ir::Op> &op : body.ops) {
      if (op->kind == ir::OpKind::Loop)
        loops.push_back({ir::LoopOp<const ir::Op>(*op), std::exchange(epilogue, {})});
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
  KernelEmitter(const ir::Kernel &kernel, Instrument instrument, const OtherLaunches &others)
      : kernel(kernel), instrument(instrument), others(others), divisors(kernel), load(findLoader(kernel)),
        math(kernel.roles.back()), turns(ir::turnsOf(math)), sections(turns ? (*turns)->body : math.body), points(math),
        stream(text.source), out(stream) {
    stream.SetBufferSize(size_t(1) << 14); // else it takes each piece on its own
  }

  KernelText run();
  /// Of a kernel that classifies key tiles: its entry, in the text of the one that it is for.
  KernelText runClassifier(bool packsHeads, const std::string &place);

private:
  /// The role that loads for another; null where every warp loads.
  static const ir::Role *findLoader(const ir::Kernel &kernel) {
    return kernel.roles.size() > 1 ? &kernel.roles.front() : nullptr;
  }

  void emitHead();
  void emitIncludes();
  void emitStorage();
  void emitFormParams();
  void emitCta();
  void emitRegisters();
  std::vector<ir::Let> letsOfTile() const;
  std::string typeOf(const ir::Let &let) const;
  bool judgesTiles() const; ///< when the kernel runs
  void emitJudgement(const ir::Let &let);
  void emitLets();
  void emitSharedKeys();
  void emitCtaAt();
  void emitTurns(bool isLoading, llvm::function_ref<void()> body);
  void emitLoad();
  void emitCopies(OpEmitter &emitter, llvm::ArrayRef<const ir::Op *> ops, const std::string &params);
  void emitRoles();
  /// A generated function: which part of a tile it does.
  enum class Part : uint8_t { Prologue, Step, Epilogue };
  struct Function {
    Part part;
    std::string name;
    std::string summary;
    std::string parameters = {};
    bool isSampled = false;
  };
  void emitFunction(const Function &function, llvm::ArrayRef<const ir::Op *> ops,
                    llvm::function_ref<void(OpEmitter &)> atEnd = {});
  void emitStep(ir::LoopOp<const ir::Op> loop);
  /// The step, where what is rare of it stands outside of the loop.
  std::optional<StepApart> stepApart(ir::LoopOp<const ir::Op> loop) const;
  static std::string nameOfBefore(ir::LoopOp<const ir::Op> loop) { return ("before_" + loop.name()).str(); }
  static std::string nameOfStep(ir::LoopOp<const ir::Op> loop) { return (loop.name() + "_step").str(); }
  /// The views that threads copy from.
  std::vector<ir::Matrix> sources() const;
  /// Of a Cta: its declaration, what it is, and where it comes from.
  struct Member {
    std::string declaration, note, value;
  };
  std::vector<Member> membersOfSources() const;
  std::vector<Member> membersOfCta() const;
  void emitValueOfCta(const std::string &head);
  void emitLoops();
  void emitEntry();
  void emitTile();
  void emitTiles();
  void emitCombine();
  void emitClassifier();
  std::string placeOfSights() const;
  bool hasCounter() const;
  bool namesScalar(const ir::Scalar &scalar) const;
  std::string judgementByWarp(const ir::Expr &condition) const;
  std::string mapOf(const ir::Buffer &sights) const;
  std::string distinctOf(const ir::Kernel &classifier, const ir::Expr &count,
                         llvm::ArrayRef<ir::RunValue> indices) const;
  std::string expressionOf(const ir::Expr &value);
  std::string letValue(const ir::Expr &value) const;
  bool runsAtMostOnce(ir::LoopOp<const ir::Op> loop) const { return fagen::runsAtMostOnce(kernel, math, loop); }
  bool isSampled(ir::LoopOp<const ir::Op> loop) const;
  std::vector<const ir::Buffer *> buffersIn(ir::Space space) const;
  std::vector<const ir::Buffer *> runningRings() const;
  ir::ElementType elementType() const;
  /// What the text calls it.
  llvm::StringRef spellElement(ir::ElementType type) const {
    return type == elementType() ? "Element" : spellType(type);
  }
  bool isSplit() const { return kernel.grid.split.has_value(); }
  /// Whether the argument has more than attention's parameters.
  bool isFormed() const { return formed; }
  const char *formArgument() const { return isFormed() ? ", form" : ""; }
  const char *formParameter() const { return isFormed() ? ", const FormParams &form" : ""; }
  bool mapsNamePlaces() const;
  const char *paramsType() const { return load || isFormed() ? "MappedAttentionParams" : "AttentionParams"; }
  const char *placeType() const { return isSplit() ? "SplitPlace" : "CtaPlace"; }
  std::string locate() const;
  bool isInstrumented() const { return instrument != Instrument::None; }
  /// The arguments of the clocks' templates.
  std::string clockArguments() const;
  std::string tileArguments() const;

  const ir::Kernel &kernel;
  const bool formed = !kernel.scalars.empty() || !kernel.readTensors().empty();
  const Instrument instrument;
  const OtherLaunches others;
  const TileDivisors divisors;
  const ir::Role *const load; ///< null where every warp loads
  const ir::Role &math;
  const std::optional<ir::LoopOp<const ir::Op>> turns; ///< over tiles of query rows; none where a CTA has one
  const Sections sections;                             ///< of math, of one tile
  const Points points;
  KernelText text;
  std::vector<OpPlan> &opsOfText = text.ops[&kernel];
  llvm::raw_string_ostream stream;
  IndentedStream out;
};

} // namespace fagen

// fagen: makes the launch that classifies key tiles, of a kernel whose mask only its elements tell of.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// It takes the same argument as the kernel: attention's parameters, the form's scalars and tensors. Its one op has the
// mask's predicate as it stands, of whole sequences: splits end where they do in the kernel alone. First is asked what
// a tile's ends, and elements along its rows or keys, tell of it. So tiles above a diagonal cost nothing, and of
// numbers of documents only tiles with several are read element by element.

#include "Classifier.h"

#include "fagen/IR/ExprAnalysis.h"
#include "fagen/IR/Measures.h"
#include "fagen/IR/RunValues.h"
#include "fagen/Target/MmaInstrs.h"

#include "llvm/ADT/StringSet.h"

#include <fagen/device/tile/layout.h>

using namespace fagen;
using namespace fagen::ir;

Expr fagen::tileRows(const Kernel &kernel, int64_t rows) {
  const llvm::StringRef name = nameOf(Measure::TileRows);
  return kernel.hasConstant(name) && kernel.constant(name) == rows ? Expr::variable(name) : constant(rows);
}

namespace {

class ClassifierBuilder {
public:
  ClassifierBuilder(const Kernel &kernel, ConstMask mask, int64_t rows)
      : kernel(kernel), mask(mask), rows(rows), predicate(ofAllKeys(mask.predicate())) {}

  /// Heads and batches have maps of their own where the mask names them.
  Buffer sights() const {
    const Expr one = constant(1), keys = keysOf(kernel, mask);
    Buffer buffer;
    buffer.name = kernel.freshName("sights");
    buffer.space = Space::Global;
    buffer.type = ElementType::I32;
    buffer.location = mask->location;
    buffer.shape = {names(RunValue::BatchIndex) ? variable(RunValue::Batch) : one,
                    names(RunValue::Head) || names(RunValue::KvHead)
                        ? variable(kernel.packsHeads() ? RunValue::KvHeads : RunValue::Heads)
                        : one,
                    ceilDiv(limit(), tileRows(kernel, rows)), ceilDiv(variable(RunValue::SeqKv), keys)};
    return buffer;
  }

  std::unique_ptr<Kernel> build(const Buffer &sights) const {
    auto made = std::make_unique<Kernel>();
    made->symbol = kernel.symbol + "_key_tiles";
    made->target = kernel.target;
    made->backend = toString(plainFamily().family).str();
    made->location = kernel.location;
    made->phase = Phase::Split;
    made->threads = 32 * device::kClassifyWarps;
    made->grid = {.unit = CtaGrid::KeyTiles};
    made->scalars = kernel.scalars;
    for (const Constant &constant : kernel.constants)
      if (isMeasure(constant.name))
        made->constants.push_back(constant);
    for (const Buffer *tensor : kernel.readTensors())
      made->addBuffer(*tensor);
    Buffer &map = made->addBuffer(sights);
    copyLets(*made);
    made->roles.push_back({"all", 0, device::kClassifyWarps, {}});
    const MaskJudgement judgement = judge();
    Builder builder(made->roles.front().body);
    builder.setLocation(mask->location);
    builder.add(makeClassifyTiles({.dst = {&map, {}},
                                   .test = predicate,
                                   .row = mask.row(),
                                   .key = variable(RunValue::KeyBegin),
                                   .limit = limit(),
                                   .seen = unlessKnown(judgement.seen, 1),
                                   .whole = unlessKnown(judgement.whole, 0)}));
    return made;
  }

private:
  static bool isMeasure(llvm::StringRef name) {
    return name == nameOf(Measure::TileRows) || name == nameOf(Measure::TileKeys);
  }

  /// As a split would have it that has all keys.
  static Expr ofAllKeys(const Expr &predicate) {
    return predicate.substitute(nameOf(RunValue::SplitBegin), constant(0))
        .substitute(nameOf(RunValue::SplitKeys), variable(RunValue::SeqKv));
  }

  /// The predicate, or a let that it names.
  bool names(RunValue value) const {
    const llvm::StringSet<> lets = namedLets();
    return predicate.uses(nameOf(value)) || llvm::any_of(kernel.lets, [&](const Let &let) {
             return lets.contains(let.name) &&
                    (let.source ? llvm::any_of(let.source->at, [&](const Expr &at) { return at.uses(nameOf(value)); })
                                : let.value.uses(nameOf(value)));
           });
  }

  Expr limit() const {
    const Expr queries = variable(RunValue::SeqQ);
    return kernel.packsHeads() ? queries * variable(RunValue::HeadsPerKv) : queries;
  }

  MaskJudgement judge() const {
    const Expr first = variable(RunValue::KeyBegin), keys = keysOf(kernel, mask);
    return judgeMask(kernel, predicate, mask.row(), mask.row() + constant(rows - 1), first, first + keys - constant(1),
                     JudgedReads::Runs);
  }

  /// Null where it is that of every tile.
  static Expr unlessKnown(const Expr &condition, int64_t value) {
    return condition == constant(value) ? Expr() : condition;
  }

  /// Those that the predicate names, and those that these do.
  llvm::StringSet<> namedLets() const {
    llvm::StringSet<> named;
    auto add = [&](const Expr &expr) { expr.forEachVariable([&](llvm::StringRef name) { named.insert(name); }); };
    add(predicate);
    for (const Let &let : llvm::reverse(kernel.lets))
      if (named.contains(let.name) && !let.judged) {
        add(let.value);
        if (let.source)
          llvm::for_each(let.source->at, add);
      }
    return named;
  }

  void copyLets(Kernel &made) const {
    const llvm::StringSet<> named = namedLets();
    for (const Let &let : kernel.lets)
      if (named.contains(let.name)) {
        made.lets.push_back(let);
        if (std::optional<GlobalElement> &source = made.lets.back().source)
          source->buffer = made.buffer(source->buffer->name);
      }
  }

  const Kernel &kernel;
  const ConstMask mask;
  const int64_t rows;
  const Expr predicate;
};

} // namespace

const Buffer &fagen::addClassifier(Program &program, Kernel &kernel, ConstMask mask, int64_t rows) {
  const ClassifierBuilder builder(kernel, mask, rows);
  const Buffer &sights = kernel.addBuffer(builder.sights());
  program.kernels.push_back(builder.build(sights));
  return sights;
}

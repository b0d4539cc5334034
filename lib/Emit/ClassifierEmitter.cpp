// fagen: the text of the launch that classifies key tiles, and where what it finds lies.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KernelEmitter.h"

#include "form/KeyRuns.h"

#include "llvm/ADT/StringExtras.h"

using namespace fagen;
using namespace fagen::ir;

/// The offset of the map in the workspace, as BuildPlan.cpp gives it: the map follows what has a place of its own
/// there.
std::string KernelEmitter::placeOfSights() const {
  if (isSplit())
    return "split_bytes<kHeadDimV>(params)";
  if (isInstrumented())
    return fmt::format("record_bytes<kTileRows, Rows::{}, {}>(params)", kernel.packsHeads() ? "kOfGroup" : "kOfHead",
                       clockArguments());
  return hasCounter() ? "kBehindCounter" : "0";
}

namespace {

/// What tells the masks of batches, or of heads, apart.
struct Distinction {
  bool isOfStrides = true;       ///< nothing but where tensors are read
  std::set<std::string> strides; ///< then by these

  /// Adds what of the expression depends on the index.
  void add(const Kernel &kernel, const Expr &expr, llvm::StringRef index) {
    if (!expr.uses(index))
      return;
    if (!isReadOfElement(kernel, expr)) {
      isOfStrides &= expr.kind() != ExprKind::Variable;
      for (const Expr &operand : expr.operands())
        add(kernel, operand, index);
      return;
    }
    const llvm::StringRef tensor = expr.operands().front().name().drop_front();
    for (const auto &[dimension, at] : llvm::enumerate(expr.indices()))
      if (at.uses(index))
        strides.insert(fmt::format("form.{}.stride[{}]", tensor.str(), dimension));
  }
};

} // namespace

/// Of batches or heads, of which `index` is one: how many have maps of their own, as the caller's strides tell.
std::string KernelEmitter::distinctOf(const Kernel &classifier, const Expr &count,
                                      llvm::ArrayRef<RunValue> indices) const {
  Distinction distinction;
  const Expr test = ClassifyTilesOp(*classifier.roles.front().body.ops.front()).test();
  for (const RunValue index : indices) {
    distinction.add(classifier, test, nameOf(index));
    for (const Let &let : classifier.lets)
      if (let.source)
        for (const Expr &at : let.source->at)
          distinction.isOfStrides &= !at.uses(nameOf(index));
      else
        distinction.isOfStrides &= !let.value.uses(nameOf(index));
  }
  if (!distinction.isOfStrides || distinction.strides.empty())
    return letValue(count);
  return fmt::format("distinct({}, {})", letValue(count), llvm::join(distinction.strides, ", "));
}

std::string KernelEmitter::mapOf(const Buffer &sights) const {
  const Kernel &classifier = kernel.grid.unit == CtaGrid::KeyTiles ? kernel : *others.classifier;
  return fmt::format("SightMap{{{}, {}, {}, {}}}", distinctOf(classifier, sights.shape[0], RunValue::BatchIndex),
                     distinctOf(classifier, sights.shape[1], {RunValue::Head, RunValue::KvHead}),
                     letValue(sights.shape[2]), letValue(sights.shape[3]));
}

/// The entry stands in this text, and names its constants and its struct of params.
void KernelEmitter::emitClassifier() {
  KernelText classifier =
      KernelEmitter(*others.classifier, Instrument::None, {}).runClassifier(kernel.packsHeads(), placeOfSights());
  std::vector<OpPlan> &ops = text.ops[others.classifier] = std::move(classifier.ops[others.classifier]);
  for (OpPlan &op : ops)
    op.line += out.getLine() - 1;
  out << classifier.source;
}

/// A CTA of the kernel itself keeps all; a launch that classifies takes those that its test and its lets name.
bool KernelEmitter::namesScalar(const Scalar &scalar) const {
  if (kernel.grid.unit != CtaGrid::KeyTiles)
    return true;
  bool found = llvm::any_of(kernel.lets, [&](const Let &let) {
    return let.value.uses(scalar.name) ||
           (let.source && llvm::any_of(let.source->at, [&](const Expr &at) { return at.uses(scalar.name); }));
  });
  forEachExpr(*math.body.ops.front(), [&](const Expr &expr) { found |= expr.uses(scalar.name); });
  return found;
}

/// All lanes ask together.
std::string KernelEmitter::judgementByWarp(const Expr &condition) const {
  return letValue(condition.rewritten([&](const Expr &node) {
    if (node.kind() != ExprKind::Lowest && node.kind() != ExprKind::Highest)
      return Expr();
    const char *const name = node.kind() == ExprKind::Lowest ? "lowest" : "highest";
    return variable(fmt::format("{}_by_warp({})", name, letValue(node.operand())));
  }));
}

KernelText KernelEmitter::runClassifier(bool packsHeads, const std::string &place) {
  const Op &op = *math.body.ops.front();
  const ClassifyTilesOp classify(op);
  line(out, "\n/// Launched before: what each tile of query rows sees of each key tile ({}).", op.location.str());
  {
    const Braces scope(
        out, "}",
        "extern \"C\" __global__ void __launch_bounds__(32 * kClassifyWarps, kClassifyCtas) {}(const __grid_constant__ "
        "{}) {{",
        kernel.symbol, isFormed() ? "FormedParams<FormParams> all" : "AttentionParams params");
    if (isFormed())
      line(out, "const MappedAttentionParams &params = all.attention;\nconst FormParams &form = all.form;");
    line(out, "const SightMap map = {};", mapOf(*classify.dst().buffer));
    opsOfText.push_back({out.getLine(), points.nameOf(&op), op.location.str(), 0});
    const Braces places(out, "});", "classify_tiles(params, map, {}, [&](long long number) {{", place);
    line(out, "const KeyTilePlace place = locate_key_tile<kTileRows, kTileKeys{}>(params, map, number);",
         packsHeads ? ", Rows::kOfGroup" : "");
    emitLets();
    if (classify.seen())
      line(out, "if (!({}))\n  return kNone;", judgementByWarp(classify.seen()));
    if (classify.whole())
      line(out, "if ({})\n  return kWhole;", judgementByWarp(classify.whole()));
    const ConditionByRuns test(kernel, classify.test());
    const Braces runs(out, "});", "return sight_of<kTileRows, kTileKeys>({}, {}, {}, [&](int q, int {}, auto{}) {{",
                      letValue(classify.row()), letValue(classify.limit()), letValue(classify.key()), test.first,
                      test.runs.empty() ? "" : " " + test.read);
    emitSeenOfRun(out, test, "", [&](const Expr &expr) { return letValue(expr); });
  }
  out.flush();
  stream.flush();
  return std::move(text);
}

// fagen: the IR verifier: operands, attributes, names and shapes of ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "VerifierState.h"

#include "fagen/IR/ExprAnalysis.h"
#include "fagen/IR/ExprTypes.h"
#include "fagen/IR/Names.h"
#include "fagen/IR/Products.h"
#include "fagen/IR/Queries.h"
#include "fagen/IR/Sync.h"
#include "fagen/IR/Views.h"
#include "fagen/Support/Suggest.h"

using namespace fagen;
using namespace fagen::ir;
using llvm::StringRef;
using llvm::Twine;

namespace {

class OpVerifier {
public:
  OpVerifier(const Role &role, VerifierState &state) : role(role), state(state), kernel(state.kernel) {}

  void check(const Block &block) {
    for (const std::unique_ptr<Op> &op : block.ops)
      check(*op);
  }

private:
  void defect(const Op &op, const Twine &message) { state.defect(op.location, opInfo(op.kind).name + ": " + message); }

  void check(const Op &op) {
    bool complete = checkOperands(op);
    complete &= checkAttributes(op); // both, for all that is wrong
    if (op.site != 0 && !opInfo(op.kind).hasSite)
      defect(op, "only barriers, arrivals, waits and fences have a site");
    if (!opInfo(op.kind).hasBody && !op.body.ops.empty())
      defect(op, "the op has no body");
    if (!complete)
      return;
    if (op.kind == OpKind::Loop)
      return checkLoop(op);
    verifyMatrix(op, state);
    if (isOfCluster(op))
      checkCluster(op);
    if (const auto copy = dynCast<CopyIssueOp>(op))
      checkCopy(*copy);
    if (const auto store = dynCast<BulkStoreOp>(op))
      checkBulk(op, *store->dst().buffer, *store->src().buffer);
    if (const auto map = dynCast<MapOp>(op))
      checkMap(*map);
    if (const auto reduce = dynCast<ReduceOp>(op))
      checkReduce(*reduce);
    if (op.kind == OpKind::Vote)
      checkVote(op.body);
    if (const auto classify = dynCast<ClassifyTilesOp>(op))
      checkClassify(*classify);
    if (op.kind == OpKind::PlanRows)
      verifyPlan(op, state);
    if (const auto product = asProduct(op))
      checkProduct(op, *product);
    else
      checkQuads(op);
    checkPaired(op);
    if (const auto barrier = dynCast<BarrierOp>(op))
      checkBarrier(*barrier);
    if (const auto turn = dynCast<AwaitTurnOp>(op))
      checkTurn(*turn);
    if (const auto turn = dynCast<PassTurnOp>(op))
      checkTurn(*turn);
    if (op.kind == OpKind::MmaIssue || op.kind == OpKind::MmaCommit || op.kind == OpKind::MmaWait ||
        isBy(op, Actor::Group))
      checkGroups(op);
    if (const auto branch = dynCast<IfOp>(op)) {
      state.conditions.push_back(branch->condition());
      check(op.body);
      state.conditions.pop_back();
    } else {
      check(op.body);
    }
  }

  // Operands.

  bool checkOperands(const Op &op) {
    const OpInfo &info = opInfo(op.kind);
    if (op.operands.size() != info.operands.size()) {
      defect(op, Twine(op.operands.size()) + " operands; it has " + Twine(info.operands.size()));
      return false;
    }
    bool complete = true;
    for (size_t i = 0; i != info.operands.size(); ++i)
      complete &= checkOperand(op, info.operands[i], op.operands[i]);
    return complete;
  }

  bool checkOperand(const Op &op, const OperandInfo &info, const Operand &operand) {
    if (!operand.buffer) {
      if (!info.optional)
        defect(op, "operand '" + info.name + "' is missing");
      return info.optional;
    }
    const Buffer &buffer = *operand.buffer;
    const std::string name = "operand '" + info.name.str() + "', %" + buffer.name + ",";
    if (kernel.buffer(buffer.name) != &buffer) {
      defect(op, name + " is not a buffer of this kernel");
      return false;
    }
    if (!(info.spaces & (1u << unsigned(buffer.space)))) {
      defect(op, name + " is a " + toString(buffer.space) + " buffer; it may be " + spaceList(info));
      return false;
    }
    const bool isMbarrier =
        (info.effect == Effect::Sync && buffer.space == Space::Shared) || op.kind == OpKind::MbarrierInit;
    if ((buffer.type == ElementType::MBarrier) != isMbarrier) {
      defect(op, name + (isMbarrier ? " is not an mbarrier" : " is an mbarrier"));
      return false;
    }
    const bool hasIndex = buffer.map && !buffer.map->index.empty();
    if (bool(operand.position) != (buffer.isRing || hasIndex))
      defect(op, name + (buffer.isRing ? " is a ring and needs a position"
                         : hasIndex    ? " is a view with an index and needs a position"
                                       : " is not a ring and has no position"));
    if (operand.position)
      state.checkNames(operand.position, op.location, opInfo(op.kind).name + ": position of %" + buffer.name);
    return true;
  }

  static std::string spaceList(const OperandInfo &info) {
    std::vector<StringRef> names;
    for (Space space : kSpaces)
      if (info.spaces & (1u << unsigned(space)))
        names.push_back(toString(space));
    return alternatives(names);
  }

  // Attributes.

  bool checkAttributes(const Op &op) {
    const OpInfo &info = opInfo(op.kind);
    bool complete = true;
    for (const AttributeInfo &attribute : info.attributes) {
      if (op.has(attribute.attr)) {
        complete &= checkAttribute(op, attribute, op.attributes.at(attribute.attr));
      } else if (!attribute.optional) {
        defect(op, "attribute '" + attribute.name + "' is missing");
        complete = false;
      }
    }
    for (const auto &given : op.attributes)
      if (llvm::none_of(info.attributes, [&](const AttributeInfo &known) { return known.attr == given.first; }))
        defect(op, "there is no attribute '" + nameOf(given.first) + "'");
    return complete;
  }

  bool checkAttribute(const Op &op, const AttributeInfo &info, const Attribute &value) {
    if (value.index() != unsigned(info.type)) { // both list integer, string, expression
      static constexpr const char *kTypes[] = {"an integer", "a string", "an expression"};
      defect(op, "attribute '" + info.name + "' must be " + kTypes[unsigned(info.type)]);
      return false;
    }
    switch (info.type) {
    case AttributeType::Integer:
      return checkInteger(op, info, std::get<int64_t>(value));
    case AttributeType::String:
      return checkString(op, info, std::get<std::string>(value));
    case AttributeType::Expression:
      return checkExpression(op, info, std::get<Expr>(value));
    }
    return false;
  }

  bool checkInteger(const Op &op, const AttributeInfo &info, int64_t value) {
    if (value >= info.min && value <= info.max)
      return true;
    defect(op, "attribute '" + info.name + "' is " + Twine(value) + "; it may be " + Twine(info.min) + " to " +
                   Twine(info.max));
    return false;
  }

  bool checkString(const Op &op, const AttributeInfo &info, StringRef value) {
    if (info.values.empty() || llvm::is_contained(info.values, value))
      return true;
    const std::vector<StringRef> values(info.values.begin(), info.values.end());
    defect(op, "attribute '" + info.name + "' is '" + value + "'; it may be " + alternatives(values));
    return false;
  }

  bool checkExpression(const Op &op, const AttributeInfo &info, const Expr &value) {
    if (!value) {
      defect(op, "attribute '" + info.name + "' has no value");
      return false;
    }
    if (info.real)
      return checkElements(op, value);
    state.checkNames(value, op.location, opInfo(op.kind).name + ": attribute '" + info.name + "'", info.mask);
    return true;
  }

  // What single kinds need beyond the table.

  /// An analysis tries values of lets, and knows none of a size or an index of the grid.
  void checkBound(const Op &op, const Expr &bound) {
    bound.forEachVariable([&](StringRef name) {
      const bool isSize = llvm::is_contained(kernel.sizes, name);
      const bool isIndex =
          llvm::any_of(kernel.grid.indices, [&](const GridIndex &index) { return index.name == name; });
      if (isSize || isIndex)
        defect(op, "a loop's bounds are of lets, and '" + bound.str() + "' names the " + (isSize ? "size" : "index") +
                       " '" + name + "'; name it: let last = " + bound.str());
    });
  }

  void checkLoop(const Op &op) {
    const LoopOp loop(op);
    checkBound(op, loop.begin());
    checkBound(op, loop.end());
    const std::string variable = loop.variable().str();
    const bool isNew = state.declare(variable) && !isIntegerOfRun(variable);
    if (!isNew)
      defect(op, "variable '" + variable + "' hides another value of that name");
    if (op.has(Attr::Carry) != op.has(Attr::Step))
      defect(op, "a carried variable and its step go together");
    const bool isCarried = op.has(Attr::Carry) && state.declare(loop.carry());
    if (op.has(Attr::Carry) && !isCarried)
      defect(op, "carried variable '" + loop.carry() + "' hides another value of that name");
    check(op.body);
    if (isCarried)
      state.forget(loop.carry());
    if (isNew)
      state.forget(variable);
  }

  void checkCopy(CopyIssueOp<const Op> copy) {
    const Buffer &dst = *copy.dst().buffer, &src = *copy.src().buffer;
    const bool isBulk = copy.kind() == CopyKind::Bulk;
    if ((src.shape.empty() && dst.columns != src.columns) || dst.type != src.type)
      defect(*copy, "%" + dst.name + " and %" + src.name + " differ in columns or type");
    if (isBulk != (copy.full().buffer != nullptr))
      defect(*copy, "a bulk copy, and no other, signals an mbarrier: operand 'full'");
    if (!isBulk && copy->has(Attr::Hint))
      defect(*copy, "attribute 'hint' belongs to bulk copies");
    if (isBulk && copy.when())
      defect(*copy, "a bulk copy has no condition: put it into an if");
    if (isBulk)
      checkBulk(*copy, src, dst);
    if (isBulk && dst.guard && dst.guard->full != copy.full().buffer)
      defect(*copy,
             "the guard of %" + dst.name + " is filled at %" + dst.guard->full->name + ", not where the copy says");
  }

  /// The copy engine knows the tensor and nothing else: where it ends, and that its rows are one after the other.
  void checkBulk(const Op &op, const Buffer &matrix, const Buffer &tile) {
    if (matrix.shape.size() == 2)
      verifyBox(op, tile, state);
  }

  bool checkNamesOf(const Op &op, const Expr &value) {
    const bool isBox = value.kind() == ExprKind::Lowest || value.kind() == ExprKind::Highest;
    if (isBox && op.kind == OpKind::ClassifyTiles && value.operand().kind() == ExprKind::Read)
      return checkRead(op, value.operand(), isBox);
    if (value.kind() == ExprKind::Read)
      return checkRead(op, value);
    if (value.kind() == ExprKind::Variable)
      return checkName(op, value.name());
    return llvm::all_of(value.operands(), [&](const Expr &operand) { return checkNamesOf(op, operand); });
  }

  /// One that is there to be read, or a parameter of f32 or of integers that ops name as well.
  bool isRead(const Buffer &tensor) const {
    const bool isParam = !tensor.shape.empty() && !tensor.map && !tensor.param.empty(),
               isOfIntegers = tensor.type == ElementType::I32 || tensor.type == ElementType::U32;
    return isOfReals(tensor) || (isParam && isOfIntegers) || llvm::is_contained(kernel.readTensors(), &tensor);
  }

  bool checkRead(const Op &op, const Expr &read, bool isBox = false) {
    const StringRef name = read.operands().front().name();
    const Buffer *const tensor = kernel.buffer(name.drop_front());
    if (!tensor || !isRead(*tensor)) {
      const bool isHalf = tensor && sizeOf(tensor->type) == 2;
      defect(op, "its value reads '" + name +
                     "', which is not a tensor that is declared as a param, nor a global one of f32, i32 or u32" +
                     (isHalf ? "; elements of 16 bits come by copy_issue and convert" : ""));
      return false;
    }
    const size_t ends = isBox ? 2 : 1;
    if (read.indices().size() != ends * tensor->shape.size()) {
      defect(op, "'" + read.str() + "' has " + Twine(read.indices().size()) + " indices; " + name + " has " +
                     Twine(tensor->shape.size()) + " dimensions");
      return false;
    }
    return llvm::all_of(read.indices(), [&](const Expr &index) { return checkNamesOf(op, index); });
  }

  bool checkName(const Op &op, StringRef name) {
    const bool isElement = name.starts_with("%");
    const bool isOperand = isElement && llvm::any_of(op.operands, [&](const Operand &operand) {
                             return operand.buffer && operand.buffer->name == name.drop_front();
                           });
    if (isOperand || (!isElement && isReal(name)))
      return true;
    if (isElement) {
      defect(op, "its value names '" + name + "', which is none of its operands");
      return false;
    }
    state.checkNames(variable(name), op.location, opInfo(op.kind).name + ": attribute 'value'", true);
    return true;
  }

  /// A map's value names elements of its operands, real numbers of the run, and integers.
  bool checkElements(const Op &op, const Expr &value) {
    bool complete = checkNamesOf(op, value);
    auto typeOfName = [&](StringRef name) { return isReal(name) ? ExprType::Real : ExprType::Integer; };
    std::string error;
    const bool isTest = op.kind == OpKind::Vote || op.kind == OpKind::ClassifyTiles;
    const ExprType wanted = isTest ? ExprType::Integer : ExprType::Real;
    const std::optional<ExprType> type = typeOf(value, typeOfName, error);
    if (!type)
      defect(op, "in its value " + error);
    else if (*type != wanted)
      defect(op, "its value, '" + value.str() + "', is " +
                     (wanted == ExprType::Real ? "an integer, but elements are real numbers; f32() makes one"
                                               : "a real number; a test is a comparison"));
    return complete && type == wanted;
  }

  /// Elements of the same place, or of the same row.
  void checkMap(MapOp<const Op> map) {
    const Buffer &dst = *map.dst().buffer;
    for (const Operand *operand : {&map.x(), &map.y()}) {
      if (!operand->buffer)
        continue;
      const Buffer &source = *operand->buffer;
      if (!map.value().uses("%" + source.name))
        defect(*map, "it reads %" + source.name + ", which its value does not name");
      if (source.columns != 1 && source.columns != dst.columns)
        defect(*map, "%" + source.name + " has " + Twine(source.columns) + " columns, %" + dst.name + " has " +
                         Twine(dst.columns) + "; it may have as many, or one");
      if (source.space == dst.space && source.space == Space::Fragment && source.rows != dst.rows)
        defect(*map, "%" + source.name + " has " + Twine(source.rows) + " rows, %" + dst.name + " has " +
                         Twine(dst.rows) + "; fragments have as many");
    }
    const bool namesPlace = usesScope(map.value(), RunScope::Element);
    if (namesPlace && (!map.row() || !map.key()))
      defect(*map, "its value names a place, q or k; attributes 'row' and 'key' must say where the tile begins");
  }

  /// Who reads or makes columns has them in pairs, but for loads, element by element work, and what sorts them.
  void checkQuads(const Op &op) {
    const bool isMap = op.kind == OpKind::Map, mayLoad = op.kind == OpKind::LoadFragment;
    for (const Operand &operand : op.operands) {
      const Buffer *const fragment = operand.buffer;
      if (!fragment || fragment->columns == 1 || fragment->space != Space::Fragment)
        continue;
      if (isMap && fragment->isInQuads != op.operands.front().buffer->isInQuads)
        defect(op, "%" + fragment->name + " and %" + op.operands.front().buffer->name +
                       " differ in the order of columns: one has them in quads");
      if (isMap && fragment->isInQuads && MapOp(op).key())
        defect(op, "%" + fragment->name + " has its columns in quads; a value that names its place takes pairs");
      const bool isSorted =
          op.kind == OpKind::Convert && &operand == &op.operands[1] && op.operands[0].buffer->type == ElementType::F32;
      if (fragment->isInQuads && !isMap && !mayLoad && !isSorted)
        defect(op, "%" + fragment->name + " has its columns in quads; convert it to a fragment of f32 first");
    }
  }

  /// Boxes of paired columns begin at a multiple of 16, and lie in memory as in the tile; products sum over columns of
  /// one order; conversions and staged results make it. Nobody else looks at them.
  void checkPaired(const Op &op) {
    const std::optional<Product> product = asProduct(op);
    const bool isBox = op.kind == OpKind::BulkStore || op.kind == OpKind::CopyIssue;
    const bool makes = op.kind == OpKind::Convert || op.kind == OpKind::StageOutput || op.kind == OpKind::Transpose;
    auto isPaired = [](const Operand &operand) {
      const Buffer *const buffer = operand.buffer;
      return buffer && (buffer->space == Space::Global ? tensorOf(*buffer) : *buffer).isPaired;
    };
    if (!llvm::any_of(op.operands, isPaired))
      return;
    const auto paired = llvm::find_if(op.operands, isPaired);
    const std::string name = "%" + paired->buffer->name;
    if (!isBox && !makes && !product)
      return defect(
          op, name +
                  " has its columns paired; conversions, stage_output, transpose, bulk copies and stores, and products "
                  "take them so");
    const unsigned first = product ? 1 : 0; // of the two that are to agree
    if (!makes && isPaired(op.operands[first]) != isPaired(op.operands[first + 1]))
      return defect(op, name + " has its columns paired, the other operand in order; both have one order");
    if (!isBox)
      return;
    if (const auto copy = dynCast<CopyIssueOp>(op); copy && copy->kind() != CopyKind::Bulk)
      return defect(op, name + " has its columns paired; they are copied in bulk");
    if (op.has(Attr::Column) && !isMultiple(expand(kernel, op.expr(Attr::Column)), 16))
      defect(op, "columns from " + op.expr(Attr::Column).str() + " on; paired ones begin at a multiple of 16");
  }

  /// Other warps do not come along: nobody waits, and nobody else sees what is written.
  void checkVote(const Block &body) {
    for (const std::unique_ptr<Op> &op : body.ops) {
      if (synchronises(syncOf(*op)))
        defect(*op, "it stands in a vote, where other warps do not come along, but synchronises");
      for (unsigned i = 0; i != op->operands.size(); ++i)
        if (const Buffer *buffer = op->operands[i].buffer;
            buffer && buffer->space != Space::Fragment && opInfo(op->kind).operands[i].effect != Effect::Read)
          defect(*op, "it stands in a vote, but writes %" + buffer->name + ", which other warps see");
      checkVote(op->body);
    }
  }

  /// An entry for each key tile of each tile of rows, of each head and batch or of all.
  void checkClassify(ClassifyTilesOp<const Op> classify) {
    const Buffer &map = *classify.dst().buffer;
    if (kernel.grid.unit != CtaGrid::KeyTiles)
      defect(*classify, "the kernel's grid is " + wordOf(kernel.grid) + "; only key_tiles has a key tile a warp");
    if (&map != kernel.scratchTensor() || map.type != ElementType::I32 || map.shape.size() != kSightDimensions)
      defect(*classify, "%" + map.name +
                            " is not a scratch of i32 with 4 dimensions: batches, heads, tiles of rows, key "
                            "tiles");
  }

  void checkReduce(ReduceOp<const Op> reduce) {
    const Buffer &dst = *reduce.dst().buffer, &src = *reduce.src().buffer;
    const unsigned columns = dst.space == Space::Shared ? kLanes : 1;
    if (dst.columns != columns)
      defect(*reduce, "%" + dst.name + " has " + Twine(dst.columns) + " columns; what is reduced to a value for each " +
                          (columns == 1 ? "row has one" : "lane has 32"));
    if (dst.space == Space::Shared && reduce.reach() != ReduceReach::Thread)
      defect(*reduce, "a row's whole result goes to a fragment, not to shared memory");
    if (reduce.reach() == ReduceReach::Lanes && (src.space != Space::Shared || src.columns != kLanes))
      defect(*reduce,
             "reach lanes takes 32 columns in shared memory, one a lane; %" + src.name + " is not such a buffer");
    if (dst.space == src.space && dst.rows != src.rows)
      defect(*reduce, "%" + dst.name + " and %" + src.name + " differ in rows");
  }

  static bool isBy(const Op &op, Actor actor) { return op.has(Attr::By) && parse<Actor>(op.text(Attr::By)) == actor; }

  static bool isOfCluster(const Op &op) {
    const auto barrier = dynCast<BarrierOp>(op);
    return op.isSet(Attr::Cluster) || (barrier && barrier->scope() == BarrierScope::Cluster);
  }

  /// The n-th of some neighbouring threads arrives in the n-th CTA; a share is whole groups of the 8 rows that a
  /// swizzle pattern has.
  void checkCluster(const Op &op) {
    constexpr unsigned kPatternRows = 8;
    if (!kernel.grid.hasClusters())
      return defect(op, "the kernel's grid is " + wordOf(kernel.grid) + ": its CTAs are in no clusters");
    if (op.kind == OpKind::Arrive && (op.has(Attr::Bytes) || !(isBy(op, Actor::Group) || isBy(op, Actor::Warp))))
      return defect(op, "threads of warps or of groups of four arrive in other CTAs, and announce no bytes");
    const auto copy = dynCast<CopyIssueOp>(op);
    if (!copy)
      return;
    if (copy->kind() != CopyKind::Bulk)
      return defect(op, "only bulk copies reach other CTAs");
    const unsigned rows = copy->dst().buffer->rows;
    if (rows % (kPatternRows * kernel.grid.cluster) != 0)
      defect(op, Twine(rows) + " rows are not shared by " + Twine(kernel.grid.cluster) + " CTAs in groups of 8");
  }

  /// What a fragment has is one warp's, shared tiles are of all warps. An asynchronous product of form abt may be of
  /// the first columns alone, and any of form ab or atb.
  void checkProduct(const Op &op, const Product &product) {
    const unsigned across = warpGridOf(kernel, role).columns;
    auto ofAll = [&](const Buffer &buffer, unsigned count, bool isDivided) {
      return count * uint64_t(isDivided && buffer.space == Space::Fragment ? across : 1);
    };
    const uint64_t columns = ofAll(*product.acc, product.acc->columns, product.takesRightTransposed()),
                   sums = ofAll(*product.a, product.sumsOfLeft(), product.dividesSums());
    const bool mayBePart = !product.takesRightTransposed() || product.isAsynchronous;
    const std::string acc = "%" + product.acc->name, a = "%" + product.a->name, b = "%" + product.b->name;
    if (sums != product.sumsOfRight())
      defect(op, a + " sums over " + Twine(sums) + (product.takesLeftTransposed() ? " rows, " : " columns, ") + b +
                     " over " + Twine(product.sumsOfRight()) + (product.takesRightTransposed() ? " columns" : " rows"));
    if (product.first != 0 && (!product.mayBeginLater() || columns + product.first > product.columnsOfRight()))
      defect(op, acc + " has " + Twine(columns) + " columns from " + Twine(product.first) + " on, " + b + " has " +
                     Twine(product.columnsOfRight()) + "; first = " + Twine(product.first) +
                     " is for products of form ab that take some of these");
    if (mayBePart ? columns > product.columnsOfRight() : columns != product.columnsOfRight())
      defect(op, acc + " has " + Twine(columns) + " columns, " + b + " makes " + Twine(product.columnsOfRight()) +
                     ": its " + (product.takesRightTransposed() ? "rows" : "columns"));
    if (const std::string why = whyNoInstruction(kernel, product); !why.empty())
      defect(op, why);
  }

  void checkBarrier(BarrierOp<const Op> barrier) {
    const bool isNamed = barrier.scope() == BarrierScope::Named;
    for (Attr attribute : {Attr::Id, Attr::FirstWarp, Attr::Warps})
      if (barrier->has(attribute) != isNamed)
        return defect(*barrier, "attribute '" + nameOf(attribute) + "' belongs to named barriers, all of them");
    if (isNamed)
      checkNamed(barrier);
    else if (barrier->has(Attr::Groups) || barrier->has(Attr::Interleaved))
      defect(*barrier, "only the warps of named barriers are divided into groups");
  }

  void checkNamed(BarrierOp<const Op> barrier) {
    const int64_t groups = barrier.groups(), warps = *barrier.warps(), id = *barrier.id();
    if (warps % groups != 0 || id + groups > kNamedBarriers)
      defect(*barrier, Twine(groups) + " groups do not divide its warps, or go beyond barrier 15");
    if (*barrier.firstWarp() + warps > kernel.threads / 32)
      defect(*barrier, "the CTA has " + Twine(kernel.threads / 32) + " warps");
    if (id == 0)
      defect(*barrier, "barrier 0 is the CTA's");
  }

  /// What groups of four warps do together.
  void checkGroups(const Op &op) {
    if (role.firstWarp % 4 != 0 || role.warps % 4 != 0)
      defect(op, "role " + role.name + " is warps " + Twine(role.firstWarp) + " to " +
                     Twine(role.firstWarp + role.warps) + ", which are not groups of four");
  }

  template <typename Turn> void checkTurn(Turn turn) {
    const int64_t groups = turn.groups();
    checkGroups(*turn);
    if (groups * 4 != role.warps)
      defect(*turn, Twine(groups) + " groups of four warps take turns; role " + role.name + " has " +
                        Twine(role.warps) + " warps");
    if (turn.id() + groups > kNamedBarriers)
      defect(*turn, "barriers " + Twine(turn.id()) + " to " + Twine(turn.id() + groups - 1) + " go beyond barrier 15");
    if (turn.group().value_or(0) >= groups)
      defect(*turn, "group " + Twine(*turn.group()) + " is none of " + Twine(groups));
  }

  bool isReal(StringRef name) const { return ir::isReal(kernel, name); }

  static constexpr int64_t kNamedBarriers = 16;
  static constexpr size_t kSightDimensions = 4;

  const Role &role;
  VerifierState &state;
  const Kernel &kernel;
};

} // namespace

void ir::verifyOps(const Role &role, VerifierState &state) { OpVerifier(role, state).check(role.body); }

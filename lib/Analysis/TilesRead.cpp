// fagen: follows tiles from copies to products and stores.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Analysis/TilesRead.h"

#include "fagen/Analysis/Order.h"
#include "fagen/IR/OpClasses.h"
#include "fagen/IR/Products.h"
#include "fagen/IR/Queries.h"

#include "TileCodes.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

#include <map>

using namespace fagen;
using namespace fagen::ir;
using llvm::Twine;

namespace {

constexpr llvm::StringLiteral kRows = "rows of ", kColumns = "columns of ";

/// What lies in a slot, or what is written there for a position.
struct Content {
  int64_t position = 0;
  const Op *by = nullptr;         ///< null: nothing has been written
  const Op *overwriter = nullptr; ///< that wrote some of its bytes as another buffer's
  const Op *unreadCopy = nullptr; ///< that some step must read
  Place place;
  llvm::SmallVector<int64_t, 8> summed; ///< where the tiles began that products have added up here
};

class TileFollower {
public:
  explicit TileFollower(const Kernel &kernel) : kernel(kernel), codes(kernel), contents(codes.slots()) {
    for (const Role &role : kernel.roles) {
      roles.push_back(&role);
      numberings.emplace_back(role);
    }
    const llvm::StringSet<> ofGroups = namesOfGroups(kernel);
    areAllRead = llvm::none_of(kernel.roles, [&](const Role &role) { return usesAny(role, ofGroups); });
  }

  TilesRead run() {
    std::vector<const Points *> points;
    for (const Points &numbering : numberings)
      points.push_back(&numbering);
    auto prepare = [&](ExprValues &unrolled) {
      values = &unrolled;
      codes.encode(roles, numberings, unrolled);
    };
    auto come = [&](unsigned role, const Event &event) { listen(codes.of(role, event.point)); };
    auto follow = [&](const Run &run) { followRun(run); };
    // Where turns follow each other, Order.h asks what slots hold.
    const bool areTurnsFollowed = !needsOrder(kernel) && turnsOf(kernel.roles.front());
    const Extent extent = areTurnsFollowed ? Extent::Whole : Extent::Short;
    forEachFullRun(kernel, roles, points, extent, result.problem, {prepare, come, follow});
    return std::move(result);
  }

private:
  /// Keeps what the op says, with the values that expressions have now.
  void listen(const TileCode &code) {
    if (!code.saysPlace())
      return;
    Place &place = said.emplace_back();
    if (code.row)
      place.rows = {code.row.evaluate(*values), code.rowSource};
    if (code.column)
      place.columns = {code.column.evaluate(*values), code.columnSource};
  }

  // A run.

  void followRun(const Run &run) {
    current = &run;
    handed.clear();
    next = 0;
    for (const Timeline *timeline : codes.hasHanded() ? run.timelines : llvm::ArrayRef<const Timeline *>())
      forEachOp(*timeline,
                [&](const Event &event, const TileCode &code, const Place &place) { handOver(event, code, place); });
    next = 0;
    for (const Timeline *timeline : run.timelines) {
      llvm::for_each(contents, [](Content &content) {
        content.by = content.overwriter = content.unreadCopy = nullptr;
        content.summed.clear();
      });
      rowsCopied.clear();
      forEachOp(*timeline,
                [&](const Event &event, const TileCode &code, const Place &place) { follow(event, code, place); });
      for (const Content &content : contents)
        checkRead(content);
    }
    for (const auto &[key, content] : handed)
      checkRead(content);
    said.clear();
  }

  void forEachOp(const Timeline &timeline,
                 llvm::function_ref<void(const Event &, const TileCode &, const Place &)> visit) {
    const Place none;
    for (const Event &event : timeline.events) {
      if (!event.op)
        continue;
      const TileCode &code = codes.of(timeline.role, event.point);
      const Place &place = code.saysPlace() ? said[next++] : none;
      if (code.hasTiles && event.active)
        visit(event, code, place);
    }
  }

  /// What other roles will read, by position.
  void handOver(const Event &event, const TileCode &code, const Place &place) {
    for (const auto &[number, operand] : llvm::enumerate(code.operands)) {
      if (!operand.writes || !operand.isHanded)
        continue;
      const int64_t position = event.positionOf(number);
      Content &content = handed[{operand.firstSlot, position}];
      const bool isRing = operand.buffer->isRing, isCopy = event.op->kind == OpKind::CopyIssue;
      if (content.by && isCopy && isRing)
        checkSame(*event.op, operand, position, content, place);
      if (content.by && !isCopy)
        continue;                                                  // its role goes on with its own
      const bool isPlaceKnown = isCopy && (isRing || !content.by); // else it is one after the other
      content.position = position;
      content.by = event.op;
      content.unreadCopy = code.isForSteps ? event.op : nullptr;
      content.place = isPlaceKnown ? place : Place();
    }
  }

  void follow(const Event &event, const TileCode &code, const Place &place) {
    const Op &op = *event.op;
    std::array<Place, kMostOperands> places{};
    const llvm::MutableArrayRef<Place> read = llvm::MutableArrayRef(places).take_front(code.operands.size());
    for (unsigned i = 0; i < code.operands.size(); ++i)
      if (code.operands[i].reads)
        read[i] = this->read(op, code.operands[i], event.positionOf(i));
    const Place made = makePlace(op, read, place);
    for (unsigned i = 0; i < code.operands.size(); ++i)
      if (code.operands[i].writes)
        write(op, code.operands[i], event.positionOf(i), made, place, code.isForSteps);
    if (const std::optional<ir::Product> product = asProduct(op))
      sumUp(op, code.operands[0], event.positions[0], summedOf(*product, read[2]));
  }

  // Positions.

  Content &contentOf(const OperandCode &operand, int64_t position) {
    return contents[operand.firstSlot + slotAt(*operand.buffer, position)];
  }

  Place read(const Op &op, const OperandCode &operand, int64_t position) {
    Content &own = contentOf(operand, position);
    const bool isOwn = own.by && own.position == position;
    if (isOwn || !operand.isHanded)
      return readHere(op, operand, position, own);
    const auto found = handed.find({operand.firstSlot, position});
    if (found == handed.end()) {
      fail(op, "reads " + textOf(operand, position) + ", which nothing has written");
      return {};
    }
    found->second.unreadCopy = nullptr;
    return found->second.place;
  }

  Place readHere(const Op &op, const OperandCode &operand, int64_t position, Content &content) {
    if (!content.by && !operand.buffer->isRing)
      return {}; // it names no position, and a text may leave out who fills it
    if (content.by && content.position == position && !content.overwriter) {
      content.unreadCopy = nullptr;
      return content.place;
    }
    const std::string what = "reads " + textOf(operand, position);
    if (content.by && content.position == position)
      fail(op, what + ", some bytes of which " + nameOf(content.overwriter) + " has overwritten");
    else if (content.by)
      fail(op, what + ", whose slot holds position " + Twine(content.position) + ", which " + nameOf(content.by) +
                   " has written");
    else
      fail(op, what + ", which nothing has written");
    return {};
  }

  void write(const Op &op, const OperandCode &operand, int64_t position, const Place &made, const Place &place,
             bool isForSteps) {
    if (position < 0)
      return fail(op, "writes " + textOf(operand, position) + "; the first one is 0");
    Content &content = contentOf(operand, position);
    const bool isCopy = op.kind == OpKind::CopyIssue;
    if (isCopy) {
      if (content.by && content.position == position && operand.buffer->isRing && !operand.isHanded)
        checkSame(op, operand, position, content, place);
      checkRunning(op, *operand.buffer, place);
      checkRead(content);
    }
    if (!operand.reads)
      content.summed.clear();
    content.position = position;
    content.by = &op;
    content.overwriter = nullptr;
    content.place = made;
    if (operand.buffer->columns == 1)
      content.place.columns = {}; // a value for the whole row
    content.unreadCopy = isForSteps && !operand.isHanded ? &op : nullptr;
    for (const unsigned slot : codes.overlapping(operand.firstSlot + slotAt(*operand.buffer, position)))
      contents[slot].overwriter = &op;
  }

  void checkRead(const Content &content) {
    if (content.unreadCopy && areAllRead)
      fail(*content.unreadCopy, "copies position " + Twine(content.position) + " of %" +
                                    CopyIssueOp(*content.unreadCopy).dst().buffer->name + ", which nobody reads");
  }

  /// Two copies to one position.
  void checkSame(const Op &op, const OperandCode &operand, int64_t position, const Content &content,
                 const Place &place) {
    auto differ = [](const Coordinate &a, const Coordinate &b) {
      return a.isKnown() && b.isKnown() && a.value != b.value;
    };
    if (differ(content.place.rows, place.rows) || differ(content.place.columns, place.columns))
      fail(op, "copies another tile to " + textOf(operand, position) + " than " + nameOf(content.by));
  }

  /// A running copy begins where the one before ended, whatever its row says.
  void checkRunning(const Op &op, const Buffer &ring, const Place &place) {
    if (!op.isSet(Attr::Running) || !place.rows.isKnown())
      return;
    int64_t &row = rowsCopied[&ring];
    if (place.rows.value != row)
      fail(op, "copies rows from " + textOf(place.rows) + " to %" + ring.name + "; the copy before it ended at " +
                   Twine(row));
    row += ring.rows;
  }

  // Places.

  /// Where what the op makes begins.
  Place makePlace(const Op &op, llvm::ArrayRef<Place> read, const Place &said) {
    switch (op.kind) {
    case OpKind::CopyIssue:
      return said;
    case OpKind::LoadFragment:
    case OpKind::Convert:
      return read[1];
    case OpKind::StageOutput: {
      Place place = read[1];
      place.columns.value += StageOutputOp(op).first();
      return place;
    }
    case OpKind::Mma:
    case OpKind::MmaIssue:
      return multiply(op, read);
    case OpKind::Map:
      return mapped(op, read, said);
    case OpKind::Reduce:
      return {meet(op, 1, read[1].rows, 2, read[2].rows, kRows), {}};
    default:
      return passed(op, read, said);
    }
  }

  /// Where the elements of the right operand begin that a product sums over.
  static const Coordinate &summedOf(const ir::Product &product, const Place &b) {
    return product.takesRightTransposed() ? b.columns : b.rows;
  }

  Place multiply(const Op &op, llvm::ArrayRef<Place> read) {
    const ir::Product product = *asProduct(op);
    const bool isTransposed = product.takesRightTransposed();
    const Place &a = read[1], &b = read[2];
    const Coordinate &summed = summedOf(product, b), &ofLeft = product.takesLeftTransposed() ? a.rows : a.columns;
    if (ofLeft.isKnown() && summed.isKnown() && ofLeft.value != summed.value)
      fail(op, "sums over " + (product.takesLeftTransposed() ? kRows : kColumns) + "%" + op.operands[1].buffer->name +
                   " from " + textOf(ofLeft) + " on, and over " + (isTransposed ? kColumns : kRows) + "%" +
                   op.operands[2].buffer->name + " from " + textOf(summed) + " on");
    for (unsigned held = 3; held < read.size(); ++held) { // the first columns of a
      meet(op, 1, a.rows, held, read[held].rows, kRows);
      meet(op, 1, a.columns, held, read[held].columns, kColumns);
    }
    Place made{product.takesLeftTransposed() ? a.columns : a.rows, isTransposed ? b.rows : b.columns};
    made.columns.value += product.first;
    if (op.isSet(Attr::Accumulate)) {
      made.rows = meet(op, 0, read[0].rows, 1, made.rows, kRows);
      made.columns = meet(op, 0, read[0].columns, 2, made.columns, kColumns);
    }
    return made;
  }

  /// Each element is made of those of the same place, of vectors of those of the same row.
  Place mapped(const Op &op, llvm::ArrayRef<Place> read, const Place &said) {
    Place made = read[0];
    for (unsigned i = 1; i < read.size(); ++i) {
      made.rows = meet(op, 0, made.rows, i, read[i].rows, kRows);
      made.columns = meet(op, 0, made.columns, i, read[i].columns, kColumns);
    }
    compareWithSaid(op, 0, made, said);
    return {said.rows.isKnown() ? said.rows : made.rows, said.columns.isKnown() ? said.columns : made.columns};
  }

  /// What is stored belongs where the op says that it goes.
  Place passed(const Op &op, llvm::ArrayRef<Place> read, const Place &said) {
    Place made;
    for (unsigned i = 0; i < read.size(); ++i) {
      compareWithSaid(op, i, read[i], said);
      made.rows = read[i].rows.isKnown() ? read[i].rows : made.rows;
      made.columns = read[i].columns.isKnown() ? read[i].columns : made.columns;
    }
    return made;
  }

  void compareWithSaid(const Op &op, unsigned operand, const Place &place, const Place &said) {
    auto compare = [&](const Coordinate &is, const Coordinate &means, llvm::StringRef what) {
      if (is.isKnown() && means.isKnown() && is.value != means.value)
        fail(op, "takes the " + what + "%" + op.operands[operand].buffer->name + " to begin at " + textOf(means) +
                     "; they begin at " + textOf(is));
    };
    compare(place.rows, said.rows, kRows);
    compare(place.columns, said.columns, kColumns);
  }

  /// What two operands have in common.
  Coordinate meet(const Op &op, unsigned a, const Coordinate &ofA, unsigned b, const Coordinate &ofB,
                  llvm::StringRef what) {
    if (ofA.isKnown() && ofB.isKnown() && ofA.value != ofB.value)
      fail(op, "takes " + what + "%" + op.operands[a].buffer->name + " from " + textOf(ofA) + " on with those of %" +
                   op.operands[b].buffer->name + " from " + textOf(ofB) + " on");
    return ofA.isKnown() ? ofA : ofB;
  }

  /// A product adds to what is there: each tile once.
  void sumUp(const Op &op, const OperandCode &operand, int64_t position, const Coordinate &summed) {
    llvm::SmallVector<int64_t, 8> &before = contentOf(operand, position).summed;
    if (!summed.isKnown())
      return;
    if (llvm::is_contained(before, summed.value))
      fail(op, "adds the tile from " + textOf(summed) + " on to %" + operand.buffer->name + " once more");
    before.push_back(summed.value);
  }

  // Messages.

  void fail(const Op &op, const Twine &message) {
    if (failed.insert(&op).second)
      result.wrong.push_back({&op, nameOf(&op) + ": " + message.str(), current->steps()});
  }

  std::string nameOf(const Op *op) const {
    for (unsigned role = 0; role < roles.size(); ++role) {
      const unsigned point = numberings[role].before(op);
      if (numberings[role].size() > point && numberings[role][point].op == op)
        return (roles.size() > 1 ? roles[role]->name + "." : "") + numberings[role].nameOf(op);
    }
    return "";
  }

  std::string textOf(const Coordinate &coordinate) const {
    return codes.textOf(coordinate, [this](const Op *op) { return nameOf(op); });
  }

  static std::string textOf(const OperandCode &operand, int64_t position) {
    return (operand.buffer->isRing ? "position " + std::to_string(position) + " of %" : "%") + operand.buffer->name;
  }

  const Kernel &kernel;
  TileCodes codes;
  std::vector<const Role *> roles;
  std::vector<Points> numberings;
  bool areAllRead = true; ///< what is copied: no group of warps leaves steps out
  TilesRead result;
  llvm::DenseSet<const Op *> failed;

  // Of a run.
  ExprValues *values = nullptr;
  const Run *current = nullptr;
  std::vector<Place> said; ///< by ops that say places, in the order of timelines
  size_t next = 0;
  std::map<std::pair<unsigned, int64_t>, Content> handed; ///< by first slot and position
  std::vector<Content> contents;                          ///< by slot
  llvm::DenseMap<const Buffer *, int64_t> rowsCopied;     ///< by running copies
};

} // namespace

TilesRead fagen::findWrongTiles(const Kernel &kernel) { return TileFollower(kernel).run(); }

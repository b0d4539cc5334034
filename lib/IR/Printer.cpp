// fagen: the IR as text. include/fagen/IR/IR.h shows an example; docs of every op stand in Ops.td.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A printer prints whatever it is given, also IR that the verifier refuses: dumps are most needed then.

#include "fagen/IR/IR.h"

#include "fagen/IR/LastPass.h"
#include "fagen/IR/Names.h"
#include "fagen/Support/IndentedStream.h"

#include "llvm/ADT/StringExtras.h"

using namespace fagen;
using namespace fagen::ir;
using llvm::StringRef;

StringRef ir::toString(Space space) {
  switch (space) {
  case Space::Global:
    return "global";
  case Space::Shared:
    return "shared";
  case Space::Fragment:
    return "fragment";
  }
  return {};
}

StringRef ir::toString(ElementType type) {
  switch (type) {
  case ElementType::F16:
    return "f16";
  case ElementType::BF16:
    return "bf16";
  case ElementType::E4M3:
    return "e4m3";
  case ElementType::E5M2:
    return "e5m2";
  case ElementType::F32:
    return "f32";
  case ElementType::U32:
    return "u32";
  case ElementType::MBarrier:
    return "mbarrier";
  case ElementType::I32:
    return "i32";
  case ElementType::U8:
    return "u8";
  case ElementType::Bit:
    return "bit";
  }
  return {};
}

StringRef ir::toString(Layout layout) {
  switch (layout) {
  case Layout::RowMajor:
    return "none";
  case Layout::Xor:
    return "xor";
  case Layout::Padded:
    return "pad";
  }
  return "none";
}

StringRef ir::toString(Phase phase) {
  switch (phase) {
  case Phase::Built:
    return "built";
  case Phase::Split:
    return "split";
  case Phase::Pipelined:
    return "pipelined";
  case Phase::LaidOut:
    return "laid_out";
  case Phase::Allocated:
    return "allocated";
  case Phase::Placed:
    return "placed";
  case Phase::Verified:
    return "verified";
  }
  return {};
}

namespace {

class Printer {
public:
  explicit Printer(llvm::raw_ostream &os, bool isBare = false) : os(os), isBare(isBare) {}

  void printProgram(const Program &program, StringRef lastPass = {}) {
    os << "program @" << program.name;
    if (!lastPass.empty())
      os << " after " << quoted(lastPass);
    os << " {\n";
    {
      auto scope = os.scope();
      for (const std::unique_ptr<Kernel> &kernel : program.kernels)
        printKernel(*kernel);
    }
    os << "}\n";
  }

  void printKernel(const Kernel &kernel) {
    os << "kernel ";
    if (!isBare)
      os << "@" << kernel.symbol << " target " << kernel.target << " ";
    os << "backend " << kernel.backend << " threads " << kernel.threads;
    if (!isBare)
      os << " phase " << toString(kernel.phase);
    if (kernel.sharedBytes != 0)
      os << " shared " << kernel.sharedBytes;
    printLocation(kernel.location);
    os << " {\n";
    {
      auto scope = os.scope();
      if (!isBare)
        for (const std::string &text : kernel.about)
          os << "about " << quoted(text) << "\n";
      for (const Constant &constant : kernel.constants)
        printConstant(constant);
      printOptions(kernel.options);
      printSizes(kernel);
      for (const Scalar &scalar : kernel.scalars)
        printScalar(scalar);
      printGrid(kernel.grid);
      const std::vector<const Buffer *> read = kernel.readTensors();
      for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
        if (buffer->shape.empty())
          printBuffer(*buffer);
        else
          printGlobal(*buffer, llvm::is_contained(read, buffer.get()));
      for (const Let &let : kernel.lets)
        printLet(let);
      if (!isBare)
        printLedger(kernel);
      for (const Role &role : kernel.roles)
        printRole(role);
    }
    os << "}\n";
  }

  void printOp(const Op &op) {
    os << opInfo(op.kind).name;
    if (op.kind == OpKind::Loop)
      printLoopHead(op);
    else if (op.kind == OpKind::If)
      os << " " << attributeText(op, Attr::Condition);
    else
      printOperandsAndAttributes(op);
    if (op.site != 0 && !isBare)
      os << " site " << op.site;
    printLocation(op.location);
    if (!op.note.empty() && !isBare)
      os << " note(" << quoted(op.note) << ")";
    if (opInfo(op.kind).hasBody)
      printBody(op.body);
    else
      os << "\n";
  }

private:
  static std::string quoted(StringRef text) {
    std::string result = "\"";
    llvm::raw_string_ostream stream(result);
    llvm::printEscapedString(text, stream);
    return result + "\"";
  }

  void printLocation(const Location &location) {
    if (!location.isKnown() || isBare)
      return;
    os << " loc(" << quoted(location.file) << ":" << location.line;
    if (location.column != 0)
      os << ":" << location.column;
    os << ")";
  }

  template <typename Enum> static StringRef valueText(Enum value) { return toString(value); }
  static std::string valueText(const Count &value) { return value.str(); }

  void printOptions(const Options &options) {
    StringRef separator = "options {", end;
    Options::forEach(options, [&](StringRef name, const auto &option) {
      if (!option)
        return;
      os << separator << name << " = " << valueText(option->value);
      printLocation(option->location);
      separator = ", ";
      end = "}\n";
    });
    os << end;
  }

  void printSizes(const Kernel &kernel) {
    StringRef separator = "size ", end = "";
    for (const std::string &size : kernel.sizes) {
      os << separator << size;
      if (const auto range = kernel.sizeRanges.find(size); range != kernel.sizeRanges.end())
        os << " in [" << range->second.low << ", " << range->second.high << "]";
      separator = ", ";
      end = "\n";
    }
    os << end;
  }

  /// Without indices one word says all that attention's grids are.
  void printGrid(const CtaGrid &grid) {
    if (grid.isPlain())
      return;
    const bool isShort = grid.indices.empty();
    os << "grid " << (isShort ? wordOf(grid) : grid.isPersistent ? "persistent" : "tiles");
    if (isShort && (grid.split || grid.hasClusters()))
      os << " " << numberOf(grid);
    if (!isShort && grid.hasClusters())
      os << " clusters " << grid.cluster;
    if (grid.isDrawn)
      os << " drawn";
    if (!grid.listed.empty())
      os << " listed " << grid.listed;
    StringRef separator = " (";
    for (const GridIndex &index : grid.indices) {
      os << separator << index.name << " in " << index.extent.str();
      separator = ", ";
    }
    os << (isShort ? "" : ")");
    printOrder(grid);
    os << "\n";
  }

  void printOrder(const CtaGrid &grid) {
    if (grid.order == TileOrder::LastFirst)
      os << " last_first";
    if (!grid.turns)
      return;
    os << " longest_first " << grid.turns->rows.str();
    if (grid.turns->rowsOfRun)
      os << " of " << grid.turns->rowsOfRun.str();
    if (grid.turns->tiles)
      os << ", " << grid.turns->tiles->str();
  }

  void printList(llvm::ArrayRef<Expr> values) {
    StringRef separator = "[";
    for (const Expr &value : values) {
      os << separator << value.str();
      separator = ", ";
    }
    os << "]";
  }

  void printScalar(const Scalar &scalar) {
    os << "param " << scalar.name << " : " << (scalar.isReal ? "f32" : "i32");
    if (!scalar.isReal)
      os << " in [" << scalar.low << ", " << scalar.high << "]";
    os << "\n";
  }

  /// A tensor with a shape; one next to attention's is declared as a param.
  void printGlobal(const Buffer &buffer, bool isRead) {
    const bool isScratch = buffer.param.empty() && !buffer.map;
    os << (buffer.map ? "view" : isRead ? "param" : isScratch ? "scratch" : "global") << " %" << buffer.name;
    if (buffer.map && !buffer.map->index.empty())
      os << "[" << buffer.map->index << "]";
    os << " : " << toString(buffer.type);
    printList(buffer.shape);
    if (const std::optional<AddressMap> &map = buffer.map) {
      os << " = (" << map->row << (map->column.empty() ? "" : ", ") << map->column << ") -> %" << map->base->name;
      printList(map->at);
    } else if (!isRead && !isScratch) {
      os << " param " << buffer.param << (buffer.isStrided ? " strided" : "") << (buffer.isPaired ? " paired" : "");
    }
    if (buffer.values)
      os << " in [" << buffer.values->low << ", " << buffer.values->high << "]";
    os << (buffer.isAscending ? " ascending" : "") << (buffer.isDistinct ? " distinct" : "")
       << (buffer.arePlaces ? " places" : "") << (buffer.isConstant ? " constant" : "");
    printLocation(buffer.location);
    os << "\n";
  }

  void printConstant(const Constant &constant) {
    os << "const " << constant.name << " = " << constant.value;
    if (!constant.origin.empty() && !isBare)
      os << " origin " << quoted(constant.origin);
    printLocation(constant.location);
    os << "\n";
  }

  void printBuffer(const Buffer &buffer) {
    os << toString(buffer.space) << " %" << buffer.name << " : " << toString(buffer.type) << "[";
    if (buffer.space == Space::Global && buffer.rows == 0)
      os << "rows";
    else
      os << buffer.rows.str();
    os << " x " << buffer.columns.str() << "]" << (buffer.isInQuads ? " quads" : "")
       << (buffer.isPaired ? " paired" : "");
    if (!buffer.param.empty())
      os << " param " << buffer.param;
    if (buffer.isRing)
      os << " stages " << buffer.stages.str();
    if (buffer.layout != Layout::RowMajor)
      os << " swizzle " << toString(buffer.layout);
    if (buffer.offset)
      os << " offset " << *buffer.offset;
    if (buffer.overlays)
      os << " overlays %" << buffer.overlays->name;
    if (buffer.guard)
      printGuard(*buffer.guard);
    printLocation(buffer.location);
    os << "\n";
  }

  void printGuard(const Guard &guard) {
    os << " guard full %" << (guard.full ? guard.full->name : "<missing>") << " by "
       << (guard.filledBy ? toString(*guard.filledBy) : "bytes");
    if (!guard.empty)
      return;
    os << ", empty %" << guard.empty->name << " by " << toString(guard.leftBy);
    if (guard.lag != 0)
      os << " lag " << guard.lag;
  }

  void printLedger(const Kernel &kernel) {
    for (const LedgerEntry &entry : kernel.ledger)
      os << "site " << entry.site << " " << quoted(entry.what) << " covers " << quoted(entry.covers) << "\n";
  }

  void printLet(const Let &let) {
    os << "let " << let.name;
    if (const std::optional<GlobalElement> &source = let.source) {
      os << " in [" << source->low << ", " << source->high << "] = %" << source->buffer->name;
      printList(source->at);
    } else if (const std::optional<TileJudgement> &judged = let.judged) {
      os << " judges " << judged->tiles.str() << " from " << judged->first.str() << " as " << judged->low << " to "
         << judged->high << " seen " << judged->seen.str() << " whole " << judged->whole.str();
    } else {
      os << " = " << let.value.str();
    }
    if (!let.note.empty() && !isBare)
      os << " note(" << quoted(let.note) << ")";
    os << "\n";
  }

  void printRole(const Role &role) {
    os << "role " << role.name << " warps " << role.firstWarp << " to " << role.firstWarp + role.warps;
    if (role.grid)
      os << " grid " << role.grid->rows << " x " << role.grid->columns;
    if (role.registers != 0)
      os << " registers " << role.registers;
    printBody(role.body);
  }

  void printBody(const Block &body) {
    os << " {\n";
    {
      auto scope = os.scope();
      for (const std::unique_ptr<Op> &op : body.ops)
        printOp(*op);
    }
    os << "}\n";
  }

  static std::string attributeText(const Op &op, Attr attribute) {
    auto it = op.attributes.find(attribute);
    if (it == op.attributes.end())
      return "<missing>";
    if (const int64_t *integer = std::get_if<int64_t>(&it->second))
      return std::to_string(*integer);
    if (const Expr *expr = std::get_if<Expr>(&it->second))
      return *expr ? expr->str() : "<missing>";
    return quoted(std::get<std::string>(it->second));
  }

  void printLoopHead(const Op &op) {
    const auto variable = op.attributes.find(Attr::Variable);
    const bool isNamed = variable != op.attributes.end() && std::holds_alternative<std::string>(variable->second);
    os << " " << (isNamed ? op.text(Attr::Variable) : "<missing>") << " = " << attributeText(op, Attr::Begin) << " to "
       << attributeText(op, Attr::End);
    if (op.has(Attr::Carry))
      os << " carry " << op.text(Attr::Carry) << " step " << attributeText(op, Attr::Step);
    if (op.has(Attr::Name))
      os << " name " << attributeText(op, Attr::Name);
    if (op.has(Attr::About) && !isBare)
      os << " about " << attributeText(op, Attr::About);
  }

  void printOperandsAndAttributes(const Op &op) {
    llvm::ArrayRef<Operand> operands = op.operands;
    while (!operands.empty() && !operands.back().buffer)
      operands = operands.drop_back();
    StringRef separator = " ";
    for (const Operand &operand : operands) {
      os << separator;
      separator = ", ";
      if (!operand.buffer) {
        os << "none";
        continue;
      }
      os << "%" << operand.buffer->name;
      if (operand.position)
        os << "[" << operand.position.str() << "]";
    }
    if (op.attributes.empty())
      return;
    os << " {";
    separator = "";
    for (Attr attribute : attributeOrder(op)) {
      os << separator << nameOf(attribute) << " = " << attributeText(op, attribute);
      separator = ", ";
    }
    os << "}";
  }

  /// As Ops.td lists them; attributes that the op should not have come last.
  static std::vector<Attr> attributeOrder(const Op &op) {
    std::vector<Attr> order;
    for (const AttributeInfo &info : opInfo(op.kind).attributes)
      if (op.has(info.attr))
        order.push_back(info.attr);
    for (const auto &[attribute, value] : op.attributes)
      if (!llvm::is_contained(order, attribute))
        order.push_back(attribute);
    return order;
  }

  IndentedStream os;
  const bool isBare;
};

} // namespace

void ir::print(const Program &program, llvm::raw_ostream &os) { Printer(os).printProgram(program); }

void ir::print(const Program &program, StringRef lastPass, llvm::raw_ostream &os) {
  Printer(os).printProgram(program, lastPass);
}

void ir::print(const Kernel &kernel, llvm::raw_ostream &os) { Printer(os).printKernel(kernel); }

void ir::printBare(const Kernel &kernel, llvm::raw_ostream &os) { Printer(os, /*isBare=*/true).printKernel(kernel); }

void ir::print(const Op &op, llvm::raw_ostream &os, unsigned indent) {
  IndentedStream indented(os);
  for (unsigned i = 0; i != indent; ++i)
    indented.indent();
  Printer(indented).printOp(op);
}

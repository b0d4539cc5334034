// fagen: a form: how scores change, which keys a query sees and what joins the sum of a row, as typed trees.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   form gemma2 { param cap: f32 in [1, 55]; score = cap * tanh(s / cap); mask = k <= p; }
//
// Every name is resolved and every type known; each integer is proved to fit in 32 bits.
#pragma once

#include "fagen/IR/ExprAnalysis.h"
#include "fagen/Support/Location.h"

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fagen::form {

enum class Type : uint8_t { Bool, I32, F32 };

/// What a form may name without declaring it.
enum class Place : uint8_t { Score, Batch, Head, KvHead, Query, Key, QueryPlace, Batches, Heads, KvHeads, SeqQ, SeqKv };
inline constexpr unsigned kPlaces = 12;

struct PlaceInfo {
  llvm::StringRef name;
  llvm::StringRef doc;
  Type type;
  ir::Interval range; ///< of an integer
  bool isExtent;      ///< the same for all elements: what a tensor's extent may be
};
const PlaceInfo &placeInfo(Place place);
std::optional<Place> placeByName(llvm::StringRef name);

enum class Op : uint8_t {
  Integer, ///< Node::integer
  Real,    ///< Node::real
  PlaceOf, ///< Node::index, a Place
  Param,   ///< Node::index, of a scalar
  Let,     ///< Node::index
  Read,    ///< Node::index, of a tensor; operands are the indices
  Neg,
  Not,
  Add,
  Sub,
  Mul,
  Div,
  FloorDiv,
  FloorMod,
  Min,
  Max,
  BitAnd,
  BitOr,
  BitXor,
  ShiftLeft,
  ShiftRight,
  Lt,
  Le,
  Gt,
  Ge,
  Eq,
  Ne,
  And,
  Or,
  Select,
  Abs,
  ToF32,
  ToI32,
  Exp,
  Exp2,
  Log,
  Log2,
  Sqrt,
  Tanh,
};

/// How an operator is written, and what it takes.
struct OpInfo {
  Op op;
  llvm::StringRef text; ///< a name is a call; else an operator
  enum Rule : uint8_t { Numbers, Integers, Reals, Compares, Truths, Converts } rule;
  unsigned operands;
  bool isCall() const;
};
llvm::ArrayRef<OpInfo> allOps();
/// Of an operator or a function; not of leaves, reads and selects.
const OpInfo &opInfo(Op op);

/// Values that an f32 may have, as far as is known. Finite values may be as large as the ends say; an end that is
/// infinite stands for a finite value of any size.
struct RealRange {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  bool mayBeNan = false, mayBePositiveInfinity = false, mayBeNegativeInfinity = false;
  bool isNeverFinite = false; ///< then the ends say nothing
  bool isNegativeInfinity() const { return isNeverFinite && !mayBeNan && !mayBePositiveInfinity; }
};

struct Node {
  Op op = Op::Integer;
  Type type = Type::I32;
  int64_t integer = 0;
  double real = 0;
  unsigned index = 0;
  std::vector<std::shared_ptr<const Node>> operands;
  ir::Interval range;     ///< of an integer; a truth value is 0 to 1
  RealRange realRange;    ///< of an f32
  uint32_t places = 0;    ///< a bit for each Place that it depends on
  bool isRounded = false; ///< an f32 that rounding may have moved from what the expression says
};
using NodePtr = std::shared_ptr<const Node>;

enum class Element : uint8_t { Bit, U8, I32, F16, BF16, F32 };
llvm::StringRef toString(Element element);
/// What a read gives: a bit is a truth value, f16 and bf16 become f32.
Type typeOf(Element element);

struct Extent {
  enum Kind : uint8_t { Number, OfPlace, OfParam } kind = Number;
  int64_t value = 0; ///< the number, the Place or the index of a scalar param
};

struct Param {
  std::string name;
  Element element = Element::I32; ///< I32 or F32 of a scalar
  std::vector<Extent> extents;    ///< none of a scalar
  bool isAscending = false;       ///< along the last index, by the caller's promise
  bool hasRange = false;          ///< it was given one
  ir::Interval range;             ///< of integers
  RealRange realRange;            ///< of f32
  Location location;
  bool isTensor() const { return !extents.empty(); }
};

struct Let {
  std::string name;
  NodePtr value;
};

struct Form {
  std::string name;
  std::vector<Param> params;
  std::vector<Let> lets;                          ///< each names only those before it
  NodePtr score;                                  ///< of f32; null: s
  NodePtr mask;                                   ///< a truth value; null: every key is seen
  NodePtr sink;                                   ///< of f32; null: none
  NodePtr vScale;                                 ///< of f32, what V is multiplied by; null: 1
  Location location, scoreLocation, maskLocation; ///< of its name, and of what score and mask are
};

} // namespace fagen::form

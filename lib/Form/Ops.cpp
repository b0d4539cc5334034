// fagen: tables of forms: places, operators, elements.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Form/Form.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"

using namespace llvm;

namespace fagen::form {

/// Lengths are at most this.
static constexpr int64_t kMost = int64_t(1) << 30;

static constexpr PlaceInfo kPlaceTable[kPlaces] = {
    {"s", "the score, scale * q . k", Type::F32, {}, false},
    {"b", "batch", Type::I32, {0, kMost - 1}, false},
    {"h", "query head", Type::I32, {0, kMost - 1}, false},
    {"hk", "K/V head", Type::I32, {0, kMost - 1}, false},
    {"q", "query", Type::I32, {0, kMost - 1}, false},
    {"k", "key", Type::I32, {0, kMost - 1}, false},
    {"p", "the query's place among the keys, q + seq_kv - seq_q", Type::I32, {-kMost, kMost - 1}, false},
    {"batch", "number of batches", Type::I32, {1, kMost}, true},
    {"heads", "number of query heads", Type::I32, {1, kMost}, true},
    {"kv_heads", "number of K/V heads", Type::I32, {1, kMost}, true},
    {"seq_q", "number of queries", Type::I32, {1, kMost}, true},
    {"seq_kv", "number of keys", Type::I32, {1, kMost}, true},
};

const PlaceInfo &placeInfo(Place place) { return kPlaceTable[unsigned(place)]; }

std::optional<Place> placeByName(StringRef name) {
  const auto *found = find_if(kPlaceTable, [&](const PlaceInfo &info) { return info.name == name; });
  return found == std::end(kPlaceTable) ? std::nullopt : std::optional(Place(found - kPlaceTable));
}

static constexpr OpInfo kOps[] = {
    {Op::Neg, "-", OpInfo::Numbers, 1},
    {Op::Not, "!", OpInfo::Truths, 1},
    {Op::Add, "+", OpInfo::Numbers, 2},
    {Op::Sub, "-", OpInfo::Numbers, 2},
    {Op::Mul, "*", OpInfo::Numbers, 2},
    {Op::Div, "/", OpInfo::Reals, 2},
    {Op::FloorDiv, "floor_div", OpInfo::Integers, 2},
    {Op::FloorMod, "floor_mod", OpInfo::Integers, 2},
    {Op::Min, "min", OpInfo::Numbers, 2},
    {Op::Max, "max", OpInfo::Numbers, 2},
    {Op::BitAnd, "&", OpInfo::Integers, 2},
    {Op::BitOr, "|", OpInfo::Integers, 2},
    {Op::BitXor, "^", OpInfo::Integers, 2},
    {Op::ShiftLeft, "<<", OpInfo::Integers, 2},
    {Op::ShiftRight, ">>", OpInfo::Integers, 2},
    {Op::Lt, "<", OpInfo::Compares, 2},
    {Op::Le, "<=", OpInfo::Compares, 2},
    {Op::Gt, ">", OpInfo::Compares, 2},
    {Op::Ge, ">=", OpInfo::Compares, 2},
    {Op::Eq, "==", OpInfo::Compares, 2},
    {Op::Ne, "!=", OpInfo::Compares, 2},
    {Op::And, "&&", OpInfo::Truths, 2},
    {Op::Or, "||", OpInfo::Truths, 2},
    {Op::Abs, "abs", OpInfo::Numbers, 1},
    {Op::ToF32, "f32", OpInfo::Converts, 1},
    {Op::ToI32, "i32", OpInfo::Converts, 1},
    {Op::Exp, "exp", OpInfo::Reals, 1},
    {Op::Exp2, "exp2", OpInfo::Reals, 1},
    {Op::Log, "log", OpInfo::Reals, 1},
    {Op::Log2, "log2", OpInfo::Reals, 1},
    {Op::Sqrt, "sqrt", OpInfo::Reals, 1},
    {Op::Tanh, "tanh", OpInfo::Reals, 1},
};

bool OpInfo::isCall() const { return isAlpha(text.front()); }

ArrayRef<OpInfo> allOps() { return kOps; }

const OpInfo &opInfo(Op op) {
  const auto *found = find_if(kOps, [&](const OpInfo &info) { return info.op == op; });
  if (found == std::end(kOps))
    llvm_unreachable("leaves, reads and selects are no operators");
  return *found;
}

StringRef toString(Element element) {
  static constexpr StringLiteral kNames[] = {"bit", "u8", "i32", "f16", "bf16", "f32"};
  return kNames[unsigned(element)];
}

Type typeOf(Element element) {
  if (element == Element::Bit)
    return Type::Bool;
  return element == Element::U8 || element == Element::I32 ? Type::I32 : Type::F32;
}

} // namespace fagen::form

// fagen: what can be said about an expression without running it: intervals, direction, and the bounds of masks.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/Expr.h"

#include <vector>

#include "llvm/ADT/StringSet.h"

namespace fagen::ir {

struct Kernel;
struct Role;

/// What an operator gives; nothing for a division by zero, or where the value leaves 64 bits.
std::optional<int64_t> applyBinary(ExprKind kind, int64_t a, int64_t b);

/// All integers of [low, high].
struct Interval {
  int64_t low = 0, high = 0;
};

/// An interval that holds every value of `expr` when each variable lies in its own; nothing when a variable has none,
/// when a divisor may be 0, or when a bound leaves 64 bits.
std::optional<Interval> range(const Expr &expr, llvm::function_ref<std::optional<Interval>(llvm::StringRef)> lookup);
/// Likewise of an operator with operands in these.
std::optional<Interval> range(ExprKind kind, Interval a, Interval b);

/// An interval that holds a - b whatever the variables are; nothing when the two differ in more than constants within
/// sums, min, max, and divisions by one constant or by one count of heads.
std::optional<Interval> difference(const Expr &a, const Expr &b);

/// Whether it is positive wherever a CTA runs: a positive constant, a count of heads, or what is no less than one.
bool isPositive(const Expr &expr);

/// Whether it takes an element of a tensor.
bool readsMemory(const Expr &expr);

/// With lets and constants in place of their names. What is read from memory keeps its name.
Expr expand(const Kernel &kernel, Expr expr);

/// Whether some row of a tile may see one of its keys, and whether every row sees all of them.
struct MaskJudgement {
  Expr seen, whole;
};

/// What a judgement may read of a tensor.
enum class JudgedReads : uint8_t {
  Few, ///< the ends of what ascends, and where a tile has few elements these
  Runs ///< and the elements along its rows or its keys
};

/// Of the condition at rows [firstRow, lastRow] and keys [firstKey, lastKey]: what is not known counts as seen, and as
/// not whole.
MaskJudgement judgeMask(const Kernel &kernel, const Expr &condition, const Expr &firstRow, const Expr &lastRow,
                        const Expr &firstKey, const Expr &lastKey, JudgedReads reads = JudgedReads::Few);

/// Whether a judgement tells of a condition that reads a tensor.
bool canBeJudged(const Kernel &kernel, const Expr &condition, JudgedReads reads = JudgedReads::Few);
/// Whether of a part of the condition, which reads a tensor, none that reads so much does.
bool needsMore(const Kernel &kernel, const Expr &condition, JudgedReads reads);

/// Groups of warps differ in `group_row`, the first of a group's rows in the tile. A group is four warps of a role
/// whose warps share the tile's rows.
inline constexpr unsigned kGroupWarps = 4;
/// Threads of a warp.
inline constexpr unsigned kLanes = 32;

/// `group_row` and the lets that depend on it; whether an expression names one of these.
llvm::StringSet<> namesOfGroups(const Kernel &kernel);
bool usesAny(const Expr &expr, const llvm::StringSet<> &names);
bool usesAny(const Role &role, const llvm::StringSet<> &names); ///< one of its loops, positions, predicates, ...

/// With the number in place of `group_row`, for one group of the role.
Expr atGroup(const Kernel &kernel, const Expr &expr, unsigned group);

/// How a value moves when a variable grows and all others stay.
enum class Direction : uint8_t { Constant, NotDecreasing, NotIncreasing, Unknown };
Direction direction(const Expr &expr, llvm::StringRef variable);

/// Whether some loop of a tile of query rows has more steps where the tile lies after another.
bool seesMoreInLaterRows(const Kernel &kernel);

/// Which keys a tile of query rows sees:
///
///   keys  0 . . . first_key . . full_begin . . . . . full_end . . key_end . .
///         [ none           ][ some        ][ all            ][ some  ][ none
///
/// No row sees a key below firstKey or from keyEnd on; every row sees the keys of [fullBegin, fullEnd). The bounds may
/// lie outside [0, number of keys], and fullEnd may lie below fullBegin or firstKey: then no key is seen by all.
///
/// Of two alternatives, as in k < n || q - k < window, the first keys and the last may be seen, and none between: no
/// row sees a key of [gapBegin, gapEnd). Keys that all rows see lie after it.
struct MaskBounds {
  Expr firstKey, fullBegin;       ///< 0 when nothing bounds keys from below
  Expr fullEnd, keyEnd;           ///< the largest integer when nothing bounds keys from above
  Expr gapBegin, gapEnd;          ///< null where no gap is known; the gap may be empty
  std::vector<Expr> unknown = {}; ///< the conditions of which it is not known where they hold

  bool hasGap() const { return bool(gapBegin); }
};

/// The bounds for rows [rowBegin, rowBegin + rows). The predicate is made of comparisons that are linear in `k`, or of
/// floor_div(k, c) with positive c, and monotone in `q`; for one of another kind fullEnd is 0, and it does not narrow
/// the other bounds. They are exact where the predicate is a conjunction that bounds k with the same slope in q, else
/// at least safe. Of a kernel a comparison whose bounds may leave 32 bits is of another kind, too.
MaskBounds analyzeMask(const Expr &predicate, llvm::StringRef q, llvm::StringRef k, const Expr &rowBegin, int64_t rows,
                       const Kernel *kernel = nullptr);

/// A loop whose bounds say that it runs once or never: what its variable is, and when it runs.
struct OneStep {
  Expr begin, condition;
};
/// Of the first step, 0 to min(n, 1), and of the last, n - min(n, 1) to n; nothing of other bounds.
std::optional<OneStep> oneStepOf(llvm::StringRef variable, const Expr &begin, const Expr &end);

/// Whether it follows from the expression's factors that it is a multiple of the number.
bool isMultiple(const Expr &expr, int64_t number);

} // namespace fagen::ir

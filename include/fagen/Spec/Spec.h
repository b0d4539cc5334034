// fagen: the checked spec, as the front end hands it to lowering.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A SpecFile is a list of kernels; a kernel is its expanded variants, the select lines that choose among schedules at
// run time, and the gates. Every value is resolved: no default, no axis, no tune and no `when` is left.
#pragma once

#include "fagen/Form/Use.h"
#include "fagen/Spec/SharedMemory.h"
#include "fagen/Spec/SpecOptions.h" // generated enums: DType, Mask, Mma, Copy, Swizzle, ... (SpecOptions.td)
#include "fagen/Support/Location.h"
#include "fagen/Target/Target.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fagen {

/// What is computed. One point of the problem axes.
struct Problem {
  PassKind pass = PassKind::Forward;
  DType dtype = DType::F16;
  KvDType kvDType = KvDType::Same; ///< of K and V
  DType accum = DType::F32;
  unsigned headDimQK = 0; ///< columns of Q and K
  unsigned headDimV = 0;  ///< columns of V and O
  Mask mask = Mask::None;
  std::shared_ptr<const form::Use> form; ///< of the file, and then mask is none; null: mask says all
  unsigned formIndex = 0;                ///< in KernelSpec::forms
  bool lse = true;
  bool invariant = false; ///< no row's bits depend on how many others there are

  /// Where each key was set (its value); absent for a default.
  std::vector<std::pair<std::string, Location>> locations;
};

/// What stands for a problem's mask or form in keys, tables and conditions: a Mask, or from kFirstFormNumber on a form.
inline constexpr unsigned kFirstFormNumber = 3, kMostForms = 61; // six bits of a row's key
inline unsigned maskNumber(const Problem &problem) {
  return problem.form ? kFirstFormNumber + problem.formIndex : unsigned(problem.mask);
}
/// As a spec has it: "causal", "local(window = 128)".
std::string maskText(const Problem &problem);
/// What it says of scores, masks and sinks, whoever declared it.
const form::Form &formOf(const Problem &problem);

/// How it is computed. `locations` of the keys let later diagnostics point at the line that set a value.
struct Schedule {
  std::string name;      ///< empty for the unnamed schedule
  bool implicit = false; ///< made by the compiler: the unaligned fallback
  unsigned tileRows = 0; ///< query rows a CTA works on at once
  unsigned tileKeys = 0; ///< key rows a CTA works on at once
  unsigned warps = 0;
  Mma mma = Mma::Scalar;
  Copy copy = Copy::LdSt;
  unsigned stages = 2;
  Refill refill = Refill::Split;
  BarrierPolicy barriers = BarrierPolicy::Minimal;
  std::vector<std::string> barrierPlaces; ///< of at(...)
  Swizzle swizzle = Swizzle::None;
  unsigned vectorBytes = 16; ///< bytes per global access; the element size for the unaligned fallback
  OperandPlace qIn = OperandPlace::Shared;
  OperandPlace pIn = OperandPlace::Registers;
  Reduce reduce = Reduce::Warp;
  Roles roles = Roles::Unified;
  Overlap overlap = Overlap::None;
  Grid grid = Grid::Tiles;
  Exp exp = Exp::Mufu;
  unsigned expMixed = 0; ///< n of mixed(n)
  RescalePolicy rescale = RescalePolicy::Always;
  Tanh tanh = Tanh::Approx;
  Gqa gqa = Gqa::Separate;
  unsigned split = 1; ///< CTAs that share the keys of a tile of query rows; 0: auto
  bool isSplit() const { return split != 1; }
  /// Of keys that one pass reads (PassNumber in SpecOptions.td), where they are not the default.
  std::map<OptionKey, unsigned> numbers;
  unsigned number(OptionKey key) const; ///< of such a key

  /// Where each key was set (its value); invalid for a default.
  std::vector<std::pair<std::string, Location>> locations;
  Location locationOf(llvm::StringRef key) const; ///< falls back to the schedule's own location
  Location location;                              ///< of `schedule`

  // Derived by the one function that also checks them (language.md, "Warps on a tile").
  unsigned rowWarps = 1; ///< warps side by side over query rows
  unsigned keyWarps = 1; ///< warps side by side over keys of one tile; they merge at the end

  // What a SharedMeter answered to the checks (noteMeasures).
  SharedMemory shared;
  RegisterFigures figures;
};

/// Keys of each split, where that does not depend on the GPU or on how much there is to do; else 0.
unsigned splitKeys(const Problem &problem, const Schedule &schedule);

/// Whether two schedules say the same, wherever each was written.
bool haveSameValues(const Schedule &a, const Schedule &b);

struct Variant {
  std::string name;   ///< kernel[_schedule]_dtype_dQK[xDV]_mask[_axisvalues]
  std::string symbol; ///< fagen_<name>_<target>
  const TargetInfo *target = nullptr;
  Problem problem;
  Schedule schedule;
  unsigned scheduleIndex = 0;        ///< in KernelSpec::scheduleNames; the implicit one has the last index
  bool dispatched = true;            ///< first values of every schedule axis; others are reached by name only
  std::vector<Schedule> tuneChoices; ///< the other tune combinations that fit, for the tuner; not variants of their own
  std::vector<std::string> evidence; ///< of tuned values: what was measured, a line each
  Location location;                 ///< of the kernel's name
  Location locationOf(llvm::StringRef key) const; ///< of a problem's key; of one that is not set the kernel's name
};

/// Whether it was found to take more shared memory than a CTA of its target may have.
bool exceedsShared(const Variant &variant);

/// The first compute capability that runs the variant's text, 10 * major + minor: the target's, or a later one where a
/// value of its keys needs instructions that the target has and older GPUs of its family lack.
unsigned firstSmOf(const Variant &variant);

/// One line of select, its condition as a postfix program over run-time values (64-bit integers).
struct SelectOp {
  enum Kind : uint8_t {
    Constant,
    Variable,
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    CeilDiv,
    Neg,
    Not,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
    Min, ///< from here on of programs that the compiler makes: no line of select has them
    Max,
    FloorDiv
  };
  Kind kind;
  int64_t value = 0; ///< the constant, the SelectVariable, or kFirstScalar and a scalar of the kernel
};
/// Run-time values, numbered as in the C table. The problem's keys stand there only where the kernel has several values
/// of them; dtype and mask are numbers of their enumerations.
enum class SelectVariable : uint8_t {
  Batch,
  Heads,
  KvHeads,
  SeqQ,
  SeqKv,
  Sms,
  HeadDimQK,
  HeadDimV,
  DType,
  Mask,
  Splits,
  Row ///< the first one of a tile of query rows
};
inline constexpr int64_t kFirstScalar = 64;
struct SelectLine {
  std::vector<SelectOp> condition; ///< empty: otherwise
  std::string text;                ///< as written, for explanations
  unsigned scheduleIndex = 0;
  std::vector<std::string> evidence; ///< of a tuned threshold: what was measured, a line each
  Location location;
};

/// One gate: `name relation value`, e.g. registers <= 248. For `time`, value is the factor and baseline its name.
struct Gate {
  std::string name;
  std::string relation;
  double value = 0; ///< bytes, registers, absolute error, microseconds, joules or the factor of the baseline
  std::string baseline;
  std::string text; ///< as written
  Location location;
};

/// What a kernel was made for: of several kernel sets one that claims a problem comes before those whose target is
/// nearer.
struct Claim {
  std::vector<SelectOp> condition; ///< empty: nothing is claimed
  std::string text;                ///< as written
};

struct KernelSpec {
  std::string name;
  std::vector<std::string> scheduleNames; ///< in text order; then the implicit one
  std::vector<Variant> variants;          ///< in expansion order (problem axes, targets, schedules), implicit ones last
  std::vector<std::shared_ptr<const form::Use>> forms; ///< that variants have, each once
  std::vector<SelectLine> select;                      ///< always ends in an otherwise line
  std::string least = "time";                          ///< of what a tuner measured the least is taken: time or joules
  Claim claim;
  std::vector<Gate> gates;
  std::vector<std::string> remarks; ///< combinations that were dropped, each with its reason
  Location location;
};

struct SpecFile {
  std::string baseName; ///< what generated files cite
  std::vector<const TargetInfo *> targets;
  std::vector<std::shared_ptr<const form::Form>> forms;
  std::vector<KernelSpec> kernels;
};

} // namespace fagen

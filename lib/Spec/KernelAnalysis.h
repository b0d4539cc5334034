// fagen: one kernel on its way from AST to variants: the checked blocks, and what is known to be wrong.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "Checks.h"
#include "Conditions.h"
#include "OptionValues.h"
#include "fagen/Spec/Analyze.h"

#include "llvm/ADT/MapVector.h"

#include <map>
#include <set>

namespace fagen {

struct CheckedWhen;

/// A setting or a when.
struct CheckedStatement {
  std::optional<Assignment> assignment;
  std::unique_ptr<CheckedWhen> when;
};

/// What was reported of a body instead of checked: what it set is unknown, and no mistake may be seen in it.
struct LostKeys {
  KeySet keys = 0;     ///< set to something that was not understood
  KeySet possible = 0; ///< may have been set, where the body does not set them
};

/// What stands in a schedule or a when, in text order.
struct CheckedBody {
  std::vector<CheckedStatement> statements;
  LostKeys lost;
};

struct CheckedWhen {
  std::optional<Program> condition; ///< over problem variables; nothing when it was reported
  KeySet reads = 0;                 ///< the problem keys that the condition reads
  bool readsTarget = false;
  CheckedBody body;
  llvm::SMRange range; ///< of the condition
};

struct CheckedSchedule {
  std::string name; ///< empty: unnamed
  CheckedBody body;
  llvm::SMRange range; ///< of the name, or of the word `schedule`
};

/// One point of the problem axes.
struct ProblemPoint {
  Problem problem;
  KeySet unknown = 0;                        ///< keys whose value was reported
  std::map<OptionKey, llvm::SMRange> ranges; ///< of the values that were given
  std::string axisParts;                     ///< "_lse_on": what axes of keys that names leave out add to names
};

/// What a `when` can read, as variables of its program.
enum class WhenVariable : int64_t {
  Pass,
  DType,
  KvDType,
  Accum,
  HeadDim,
  HeadDimQK,
  HeadDimV,
  Mask,
  Lse,
  Invariant,
  Target
};

/// The settings that hold at one point: one for each key.
using Resolved = std::map<OptionKey, const Assignment *>;

/// For each key, which item of its axis, or which choice of its tune.
using Choice = std::map<OptionKey, unsigned>;

/// A schedule with its axes and tunes decided.
struct ScheduleChoice {
  Schedule schedule;
  KeySet unknown = 0; ///< keys that were reported, or are missing
  KeySet given = 0;   ///< keys that the spec sets
  std::map<OptionKey, llvm::SMRange> ranges;
  bool isSound = false; ///< breaks no rule, and nothing is unknown of it or its problem
};

/// A combination of tune choices, before it is known to fit.
struct TuneCandidate {
  size_t index;            ///< of the variant, in spec.variants
  Variant variant;         ///< with the choices
  std::string combination; ///< "tile = 64 x 64, warps = 8"
  llvm::SMRange place;
  std::string dropped; ///< why; empty: it breaks no rule
};

/// The schedule that fagen adds itself.
inline constexpr llvm::StringLiteral kImplicitSchedule = "unaligned";

class KernelAnalysis {
public:
  KernelAnalysis(const ast::Kernel &kernel, llvm::ArrayRef<FileForm> forms, llvm::ArrayRef<const TargetInfo *> targets,
                 const AnalyzeOptions &options, Diagnostics &diags)
      : kernel(kernel), forms(forms), targets(targets), options(options), diags(diags) {}

  KernelSpec run();

private:
  // Blocks.cpp: the text, block by block.
  void checkBlockCounts();
  void checkProblem();
  void checkSchedules();
  void checkScheduleName(const ast::Schedule &schedule);
  CheckedBody checkBody(const std::vector<ast::Statement> &body, const ast::Lost &lost);
  void checkScheduleSetting(const ast::Setting &setting, CheckedBody &body);
  const OptionInfo *findKey(const ast::Name &key, OptionBlock block, LostKeys &lost);
  std::unique_ptr<CheckedWhen> checkWhen(const ast::When &when);
  ConditionScope whenScope() const;
  const Assignment *problemSetting(OptionKey key) const;
  bool hasHeadDimPair() const;

  // Expand.cpp: points, targets, schedules, axes.
  std::vector<ProblemPoint> expandProblem();
  Resolved resolve(const CheckedSchedule &schedule, const ProblemPoint &point, const TargetInfo &target);
  void resolveBody(const CheckedBody &body, const ProblemPoint &point, const TargetInfo &target, Resolved &resolved);
  std::optional<bool> holds(const CheckedWhen &when, const ProblemPoint &point, const TargetInfo &target);
  void warnNeverTaken();
  void setProblemKey(ProblemPoint &point, const OptionInfo &option, unsigned item) const;
  void expandSchedule(unsigned index, const ProblemPoint &point, const TargetInfo &target);
  ScheduleChoice makeSchedule(const CheckedSchedule &checked, const TargetInfo &target, const Resolved &resolved,
                              const Choice &items, const Choice &tunes);
  void addVariant(unsigned index, const ProblemPoint &point, const TargetInfo &target, const Resolved &resolved,
                  const Choice &items);
  void addTuneChoices(const Variant &variant, const ProblemPoint &point, const Resolved &resolved, const Choice &items);
  void addTuneChoice(const Variant &variant, const ProblemPoint &point, const Resolved &resolved, const Choice &items,
                     const Choice &tunes);
  void takeTuneChoices();
  void addUnaligned();
  void report(llvm::ArrayRef<Finding> findings, const ProblemPoint &point, const ScheduleChoice &made,
              llvm::SMRange fallback);
  void requireKeys(const CheckedSchedule &schedule, const Resolved &resolved, const TargetInfo &target);
  /// "_prefill_f16_d64_none": everything after the kernel's name.
  std::string variantName(llvm::StringRef schedule, llvm::StringRef axisParts, const ProblemPoint &point) const;
  static KeySet givenKeys(const ProblemPoint &point);

  // CheckShared.cpp: what variants take of shared memory, once they are lowered.
  void checkShared();
  void reportShared(const Variant &measured, size_t index);
  void warnOfRegisters(const Variant &measured, size_t index);

  // Select.cpp and Gates.cpp.
  void checkLeast(const ast::Name &what);
  void checkSelect();
  void checkClaim();
  void checkSelectLine(const ast::SelectLine &line, const ConditionScope &scope);
  void warnUnselected();
  ConditionScope selectScope() const;
  void addKeyToScope(ConditionScope &scope, OptionKey key, const std::string &name, std::optional<int64_t> variable,
                     llvm::function_ref<int64_t(const Problem &)> get) const;
  std::optional<unsigned> findSchedule(const ast::Name &name);
  void checkGates();
  void checkGate(const ast::Gate &gate);

  const ast::Kernel &kernel;
  FormAxis forms;
  llvm::ArrayRef<const TargetInfo *> targets;
  const AnalyzeOptions &options;
  Diagnostics &diags;

  llvm::MapVector<OptionKey, Assignment> problemSettings;
  LostKeys problemLost;
  std::map<OptionKey, Assignment> unknownSettings; ///< one for each key of schedules, with an unknown value
  std::vector<CheckedSchedule> schedules;
  std::vector<ProblemPoint> points;
  std::vector<const ProblemPoint *> pointOfVariant; ///< of spec.variants, by index
  std::vector<ScheduleChoice> madeOfVariant;        ///< the same, without their schedules
  std::vector<TuneCandidate> tuneCandidates;
  std::set<std::pair<const char *, std::string>> reported; ///< place and rule of findings
  std::map<const CheckedWhen *, bool> everTaken;           ///< of each when that was reached: whether it ever held
  unsigned fallbackSchedule = 0;                           ///< the one `otherwise` names
  KernelSpec spec;
};

/// "seq_q <= 32": source text on one line, comments left out.
std::string textOf(llvm::SMRange range);

/// Variants of one kernel at most: beyond is a mistake, and would take minutes to generate.
inline constexpr unsigned kMaxVariants = 4096;

} // namespace fagen

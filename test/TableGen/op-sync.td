// How a new op synchronises: a row, or one for each value of an attribute, in the order of the values; else none.
// RUN: fagen-tblgen -gen-op-sync -I %source/include %s | FileCheck %s
// RUN: not fagen-tblgen -gen-op-sync -I %source/include -DTWICE %s 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not fagen-tblgen -gen-op-sync -I %source/include -DMISSING %s 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not fagen-tblgen -gen-op-sync -I %source/include -DMORE %s 2>&1 | FileCheck %s --check-prefix=MORE
include "fagen/td/Ops.td"

def Bells : Means<"bells, of all towers">;
def HandEnum : Enum<"Hand", "A hand.", ["left", "right"]>;
def Gather : Op<"gather", "by hand", [], [Choice<"hand", HandEnum>]>;
def Ring : Op<"ring", "a bell", []>;
def Sleep : Op<"sleep", "until the next", []>;

def : SyncWhere<Gather, "hand", "right", AsyncProxy, Bells, Nothing, Nothing>;
let NeedsFence = Nothing, ByActor = 1 in
def : SyncWhere<Gather, "hand", "left", Threads, Nothing, Bells, Bells>;
let Together = 1 in
def : SyncOf<Ring, Threads, Nothing, Bells, Nothing>;

// CHECK:      enum class Agent : uint8_t {
// CHECK-NEXT:   Threads, ///< those of the role
// CHECK:      enum class Means : uint8_t {
// CHECK:        Bells, ///< bells, of all towers
// CHECK:      inline constexpr SyncInfo kGatherSync[] = {
// CHECK-NEXT:   {Agent::Threads, Means::Nothing, Means::Bells, Means::Bells, Means::Nothing, true, false},
// CHECK-NEXT:   {Agent::AsyncProxy, Means::Bells, Means::Nothing, Means::Nothing, Means::AsyncFence, false, false},
// CHECK-NEXT: };
// CHECK-NEXT: inline constexpr SyncInfo kRingSync[] = {
// CHECK-NEXT:   {Agent::Threads, Means::Nothing, Means::Bells, Means::Nothing, Means::AsyncFence, false, true},
// CHECK:        {Attr::Hand, kGatherSync},
// CHECK-NEXT:   {std::nullopt, kRingSync},
// CHECK-NEXT:   {std::nullopt, kByThreads},
// CHECK-NEXT: };

#ifdef TWICE
// TWICE: [[#@LINE+1]]:1: error: op 'ring' synchronises in two ways
def : SyncOf<Ring, Threads, Nothing, Nothing, Bells>;
#endif
#ifdef MISSING
def Mill : Op<"mill", "by hand", [], [Choice<"hand", HandEnum>]>;
// MISSING: [[#@LINE+1]]:1: error: op 'mill' does not say how it synchronises where hand is 'left'
def : SyncWhere<Mill, "hand", "right", Threads, Nothing, Nothing, Nothing>;
#endif
#ifdef MORE
// MORE: [[#@LINE+1]]:1: error: op 'gather' has 3 ways to synchronise for 2 values of 'hand'
def : SyncWhere<Gather, "hand", "both", Threads, Nothing, Nothing, Nothing>;
#endif

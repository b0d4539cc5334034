// fagen: the enumerations of what a spec may say.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which keys take which of their cases, and what these mean there, stands in SpecOptions.td.

#ifndef FAGEN_TD_SPECENUMS
#define FAGEN_TD_SPECENUMS

class Case<string text, string enumerator, int number = -1> {
  string Text = text;             // as a spec writes it
  string Enumerator = enumerator; // in C++
  int Number = number;            // where fagen.h has the same enumeration: its number there; else -1
}

class Enumeration<string name, string doc, list<Case> cases> {
  string Name = name; // C++ type
  string Doc = doc;
  list<Case> Cases = cases;
}

def Forward : Case<"forward", "Forward", 1>;
def Backward : Case<"backward", "Backward", 2>;
def PassKindEnum : Enumeration<"PassKind", "Gradient direction.", [Forward, Backward]>;

def F16 : Case<"f16", "F16", 1>;
def BF16 : Case<"bf16", "BF16", 2>;
def F32 : Case<"f32", "F32", 4>;
def E4M3 : Case<"e4m3", "E4M3", 3>;
def DTypeEnum : Enumeration<"DType", "Element type.", [F16, BF16, F32, E4M3]>;

def KvSame : Case<"same", "Same", 0>;
def KvE4M3 : Case<"e4m3", "E4M3", 1>;
def KvE5M2 : Case<"e5m2", "E5M2", 2>;
def KvDTypeEnum : Enumeration<"KvDType", "Element type of K and V, where it is not Q's.", [KvSame, KvE4M3, KvE5M2]>;

def MaskNone : Case<"none", "None", 1>;
def MaskCausal : Case<"causal", "Causal", 2>;
def MaskEnum : Enumeration<"Mask", "Which keys a query sees.", [MaskNone, MaskCausal]>;

def MmaScalar : Case<"scalar", "Scalar">;
def MmaWmma : Case<"wmma", "Wmma">;
def MmaMmaSync : Case<"mma_sync", "MmaSync">;
def MmaWgmma : Case<"wgmma", "Wgmma">;
def MmaEnum : Enumeration<"Mma", "Instruction family of both products.", [MmaScalar, MmaWmma, MmaMmaSync, MmaWgmma]>;

def CopyLdSt : Case<"ld_st", "LdSt">;
def CopyCpAsync : Case<"cp_async", "CpAsync">;
def CopyTma : Case<"tma", "Tma">;
def CopyEnum : Enumeration<"Copy", "How tiles reach shared memory.", [CopyLdSt, CopyCpAsync, CopyTma]>;

def BarriersLegacy : Case<"legacy", "Legacy">;
def BarriersLight : Case<"light", "Light">;
def BarriersMinimal : Case<"minimal", "Minimal">;
def BarriersAt : Case<"at", "At">;
def BarrierPolicyEnum : Enumeration<"BarrierPolicy", "Where barriers go.",
                                    [BarriersLegacy, BarriersLight, BarriersMinimal, BarriersAt]>;

def SwizzleNone : Case<"none", "None">;
def SwizzleXor : Case<"xor", "Xor">;
def SwizzlePad : Case<"pad", "Pad">;
def SwizzleB32 : Case<"b32", "B32">;
def SwizzleB64 : Case<"b64", "B64">;
def SwizzleB128 : Case<"b128", "B128">;
def SwizzleEnum : Enumeration<"Swizzle", "Shared-memory layout against bank conflicts.",
                              [SwizzleNone, SwizzleXor, SwizzlePad, SwizzleB32, SwizzleB64, SwizzleB128]>;

def PlaceRegisters : Case<"registers", "Registers">;
def PlaceShared : Case<"shared", "Shared">;
def OperandPlaceEnum : Enumeration<"OperandPlace", "Where a matrix operand lives.", [PlaceRegisters, PlaceShared]>;

def ReduceShared : Case<"shared", "Shared">;
def ReduceWarp : Case<"warp", "Warp">;
def ReduceEnum : Enumeration<"Reduce", "How row maxima and sums cross threads.", [ReduceShared, ReduceWarp]>;

def RolesUnified : Case<"unified", "Unified">;
def RolesSpecialized : Case<"specialized", "Specialized">;
def RolesEnum : Enumeration<"Roles", "Whether loading warps are separate.", [RolesUnified, RolesSpecialized]>;

def OverlapNone : Case<"none", "None">;
def OverlapIntra : Case<"intra", "Intra">;
def OverlapPingpong : Case<"pingpong", "Pingpong">;
def OverlapBoth : Case<"both", "Both">;
def OverlapEnum : Enumeration<"Overlap", "Softmax under products.",
                              [OverlapNone, OverlapIntra, OverlapPingpong, OverlapBoth]>;

def GridTiles : Case<"tiles", "Tiles">;
def GridPersistent : Case<"persistent", "Persistent">;
def GridLongestFirst : Case<"longest_first", "LongestFirst">;
def GridEnum : Enumeration<"Grid", "How CTAs take work.", [GridTiles, GridPersistent, GridLongestFirst]>;

def ExpMufu : Case<"mufu", "Mufu">;
def ExpMixed : Case<"mixed", "Mixed">;
def ExpEnum : Enumeration<"Exp", "How exp2 is computed.", [ExpMufu, ExpMixed]>;

def RefillSplit : Case<"split", "Split">;
def RefillJoint : Case<"joint", "Joint">;
def RefillLate : Case<"late", "Late">;
def RefillEnum : Enumeration<"Refill", "When a step issues the copies of later tiles.",
                             [RefillSplit, RefillJoint, RefillLate]>;

def RescaleAlways : Case<"always", "Always">;
def RescaleLazy : Case<"lazy", "Lazy">;
def RescaleOptimistic : Case<"optimistic", "Optimistic">;
def RescaleNone : Case<"none", "None">;
def RescaleEnum : Enumeration<"RescalePolicy", "When O and the row sums follow a new row maximum.",
                              [RescaleAlways, RescaleLazy, RescaleOptimistic, RescaleNone]>;

def TanhApprox : Case<"approx", "Approx">;
def TanhExp : Case<"exp", "Exp">;
def TanhEnum : Enumeration<"Tanh", "How tanh is computed.", [TanhApprox, TanhExp]>;

def GqaSeparate : Case<"separate", "Separate">;
def GqaPack : Case<"pack", "Pack">;
def GqaEnum : Enumeration<"Gqa", "Which query rows are a tile's.", [GqaSeparate, GqaPack]>;

#endif // FAGEN_TD_SPECENUMS

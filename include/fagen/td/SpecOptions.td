// fagen: every key of a spec: its type, values, default and meaning.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From this come the C++ enumerations, the parser's keywords and suggestions, the checks of single values, the rules of
// which values go with which, and docs/Options.md. What an instruction family takes stands in MmaInstrs.td; what several
// numbers must satisfy together is arithmetic and stands in lib/Spec.

#ifndef FAGEN_TD_SPECOPTIONS
#define FAGEN_TD_SPECOPTIONS

include "fagen/td/Features.td"
include "fagen/td/SpecEnums.td"

//===-- Values of one key ------------------------------------------------------------------------------------------===//

// What stands in a value's parentheses.
class Argument;
def NoArgument : Argument;
class Names<list<string> names> : Argument { // one or more of these
  list<string> Allowed = names;
}
class Number<int min, int max> : Argument { // exactly one
  int Min = min;
  int Max = max;
}

// What another key must say, a list of its values as a spec writes them. A mask is none where nothing hides keys.
class GoesWith<string key, list<string> values, string because = ""> {
  string Key = key;
  list<string> Values = values;
  string Because = because; // follows the values in messages, after a comma
}

class Value<Case c, string doc, Argument argument = NoArgument, list<GoesWith> with = []> {
  Case TheCase = c;
  string Doc = doc;
  Argument TheArgument = argument;
  list<GoesWith> With = with;
  list<Feature> Needs = []; // of the target
  bit NotYet = 0;           // parsed and checked against the target, then refused
}

class Needs<Feature feature, Case c, string doc, list<GoesWith> with = []> : Value<c, doc, NoArgument, with> {
  let Needs = [feature];
}

// A value with which other keys must be as they are told to be.
class With<Case c, string doc, list<GoesWith> with> : Value<c, doc, NoArgument, with>;

class NotYet<Case c, string doc, Argument argument = NoArgument> : Value<c, doc, argument> { let NotYet = 1; }

class NotYetNeeds<Feature feature, Case c, string doc> : Needs<feature, c, doc> { let NotYet = 1; }

//===-- Keys -------------------------------------------------------------------------------------------------------===//

class Type<string enumerator> {
  string Enumerator = enumerator;
}
def EnumType : Type<"Enum">;       // one of Values
def SwitchType : Type<"Switch">;   // on or off
def IntegerType : Type<"Integer">; // Min to Max
def BytesType : Type<"Bytes">;     // one of Allowed, with unit B
def HeadDimType : Type<"HeadDim">; // a dim, or QK : V
def TileType : Type<"Tile">;       // rows x keys

class Option<string key, string block, Type type, string doc> {
  string Key = key;     // as a spec writes it
  string Block = block; // problem or schedule
  Type TheType = type;
  string Doc = doc;
  string Default = "";     // as a spec would write it; empty: Required, or the compiler's choice
  string DefaultDoc = "";  // how the compiler chooses where Default is empty
  bit Required = 0;
  string InName = "";      // what stands before an axis value in a variant's name
  Enumeration Enum = ?;
  list<Value> Values = [];
  int Min = 0;
  int Max = 0;
  int MultipleOf = 1;
  bit TakesAuto = 0;       // an integer that may be left to the run time: auto is 0
  list<int> Allowed = [];
  string Constant = "";    // of the kernel, by which a pass gets the number where it is not the default; empty: other code does
  list<GoesWith> With = []; // of an integer: what numbers other than the default go with
  int ColumnsEach = 0;     // of Q, which each takes: there may be no more than Q has
}

// A number that one pass reads: nothing else of the compiler knows the key.
class PassNumber<string key, string doc, string constant, list<GoesWith> with>
    : Option<key, "schedule", IntegerType, doc> {
  let Constant = constant;
  let With = with;
}

class EnumOption<string key, string block, Enumeration e, string doc, list<Value> values>
    : Option<key, block, EnumType, doc> {
  let Enum = e;
  let Values = values;
}

// Problem. Declaration order is expansion order.

def PassOption : EnumOption<"pass", "problem", PassKindEnum, "gradient direction", [
  Value<Forward, "O and LSE from Q, K, V">,
  NotYet<Backward, "dQ, dK, dV from dO">
]> { let Default = "forward"; }

def DTypeOption : EnumOption<"dtype", "problem", DTypeEnum, "element type of Q and O, and of K and V unless kv_dtype says another", [
  Value<F16, "IEEE half precision">,
  Value<BF16, "bfloat16">,
  NotYetNeeds<Fp8, E4M3, "8-bit float with scales">
]> { let Required = 1; }

class KvByte<Case c, string doc>
    : Needs<Fp8, c, doc, [GoesWith<"mma", ["mma_sync"]>, GoesWith<"copy", ["cp_async", "ld_st"]>,
                          GoesWith<"swizzle", ["xor", "none"]>, GoesWith<"accum", ["f32"]>]>;
def KvDTypeOption : EnumOption<"kv_dtype", "problem", KvDTypeEnum, "element type of K and V", [
  Value<KvSame, "that of Q and O: dtype">,
  KvByte<KvE4M3, "one byte with 4 bits of exponent and 3 of fraction, at most 448; products widen it to dtype. Head dims are multiples of 32">,
  KvByte<KvE5M2, "one byte with 5 bits of exponent and 2 of fraction, at most 57344; likewise">
]> { let InName = "kv_"; let Default = "same"; }

def AccumOption : EnumOption<"accum", "problem", DTypeEnum, "accumulator of both products", [
  Value<F32, "single precision">,
  Value<F16, "half precision: wmma and mma_sync on f16 only; scores and P V of a tile are f16, O and the sums f32">
]> { let InName = "accum_"; let Default = "f32"; }

def HeadDimOption : Option<"head_dim", "problem", HeadDimType,
    "columns of Q and K and of V: one number for both, or QK : V; tensor cores need a multiple of 16"> {
  let Required = 1;
  let Min = 8;
  let Max = 256;
  let MultipleOf = 8;
}

def MaskOption : EnumOption<"mask", "problem", MaskEnum, "which keys a query sees", [
  Value<MaskNone, "all">,
  Value<MaskCausal, "aligned bottom-right: query i sees keys j <= i + seq_kv - seq_q">
]> { let Default = "none"; }

def LseOption : Option<"lse", "problem", SwitchType,
    "may also write the natural-log log-sum-exp of each query row, in f32"> {
  let InName = "lse_";
  let Default = "on";
}

def InvariantOption : Option<"invariant", "problem", SwitchType,
    "the bits of a result do not depend on batch size, number of heads or GPU: keys are split at fixed places, and select "
    "may not ask for them"> {
  let InName = "invariant_";
  let Default = "off";
}

// Schedule.

def TileOption : Option<"tile", "schedule", TileType, "query rows x key rows that a CTA works on at once"> {
  let Required = 1;
  let Min = 1;
  let Max = 1024;
}

def WarpsOption : Option<"warps", "schedule", IntegerType, "warps that do arithmetic"> {
  let InName = "w";
  let Required = 1;
  let Min = 1;
  let Max = 16;
}

def MmaOption : EnumOption<"mma", "schedule", MmaEnum, "instruction family of both products", [
  Value<MmaScalar, "fused multiply-adds on the CUDA cores">,
  Needs<MmaSync, MmaWmma, "wmma 16 x 16 x 16: fragments of unknown layout, results staged through shared memory">,
  Needs<MmaSync, MmaMmaSync, "mma.sync m16n8k16, operands by ldmatrix">,
  Needs<Wgmma, MmaWgmma, "warp-group products from shared memory; head dims that are multiples of 32">
]> { let Required = 1; }

def CopyOption : EnumOption<"copy", "schedule", CopyEnum, "how tiles reach shared memory", [
  Value<CopyLdSt, "load to registers, store to shared memory">,
  Needs<CpAsync, CopyCpAsync, "asynchronous copies of 16 B", [GoesWith<"vector", ["16 B"]>]>,
  Needs<Tma, CopyTma, "the bulk copy engine", [GoesWith<"vector", ["16 B"]>]>
]> { let DefaultDoc = "the first of cp_async, ld_st and tma that the target has and that goes with the other keys"; }

def StagesOption : Option<"stages", "schedule", IntegerType, "depth of the K/V pipeline"> {
  let InName = "s";
  let Default = "2";
  let Min = 1;
  let Max = 8;
}

def RefillOption : EnumOption<"refill", "schedule", RefillEnum, "when a step issues the copies of later tiles", [
  Value<RefillSplit, "K and V apart, each as soon as its slot is free">,
  With<RefillJoint, "K and V together, before the step's products", [GoesWith<"roles", ["unified"]>]>,
  With<RefillLate, "K and V together after Q K^T: one wait and one barrier a step serve both; from 2 stages on",
       [GoesWith<"roles", ["unified"]>]>
]> { let InName = "refill_"; let DefaultDoc = "joint for scalar, else split"; }

def BarriersOption : EnumOption<"barriers", "schedule", BarrierPolicyEnum, "which barriers a step has", [
  With<BarriersLegacy, "six: after_load, after_scores, after_max, after_exp, after_pv, after_tile",
       [GoesWith<"roles", ["unified"]>]>,
  With<BarriersLight, "four: after_load, after_scores, after_exp, after_tile", [GoesWith<"roles", ["unified"]>]>,
  Value<BarriersMinimal, "a cover of all hazards from which no barrier can go">,
  Value<BarriersAt, "these places; refused when a hazard stays open",
        Names<["after_load", "after_scores", "after_max", "after_exp", "after_pv", "after_tile"]>,
        [GoesWith<"roles", ["unified"]>]>
]> { let Default = "minimal"; }

def SwizzleOption : EnumOption<"swizzle", "schedule", SwizzleEnum, "shared-memory layout against bank conflicts", [
  With<SwizzleNone, "rows follow each other", [GoesWith<"copy", ["ld_st", "cp_async"]>]>,
  With<SwizzleXor, "16 B chunks of a row permuted by the row's number", [GoesWith<"copy", ["ld_st", "cp_async"]>]>,
  With<SwizzlePad, "a gap of 8 elements after each row", [GoesWith<"copy", ["ld_st", "cp_async"]>]>,
  NotYet<SwizzleB32, "the bulk copy engine's 32 B pattern">,
  NotYet<SwizzleB64, "the bulk copy engine's 64 B pattern">,
  With<SwizzleB128, "the bulk copy engine's 128 B pattern, or the 64 B pattern where rows are not a multiple of 128 B. It permutes as xor does, and IR, plans and kernel heads call it that",
       [GoesWith<"copy", ["tma"]>]>
]> { let InName = "swizzle_"; let DefaultDoc = "b128 for tma; else xor for mma_sync, pad for wmma, none for scalar"; }

def VectorOption : Option<"vector", "schedule", BytesType, "bytes per global access"> {
  let InName = "v";
  let Default = "16 B";
  let Allowed = [4, 8, 16];
}

def QInOption : EnumOption<"q_in", "schedule", OperandPlaceEnum, "where Q lives as a matrix operand", [
  With<PlaceRegisters, "in registers, loaded once", [GoesWith<"grid", ["tiles"]>]>,
  Value<PlaceShared, "in shared memory, read at each step">
]> { let InName = "q_"; let DefaultDoc = "shared"; }

def PInOption : EnumOption<"p_in", "schedule", OperandPlaceEnum, "where P lives as a matrix operand", [
  Value<PlaceRegisters, "in registers: scores become the next product's operand in place">,
  Value<PlaceShared, "in shared memory">
]> { let InName = "p_"; let DefaultDoc = "registers for mma_sync and wgmma, shared for scalar and wmma"; }

def ReduceOption : EnumOption<"reduce", "schedule", ReduceEnum, "how row maxima and sums cross threads", [
  Value<ReduceShared, "through shared memory">,
  Value<ReduceWarp, "by warp shuffles">
]> { let InName = "reduce_"; let Default = "warp"; }

def RolesOption : EnumOption<"roles", "schedule", RolesEnum, "whether loading warps are separate", [
  With<RolesUnified, "every warp loads and computes", [GoesWith<"copy", ["ld_st", "cp_async"]>]>,
  Needs<Tma, RolesSpecialized, "more warps load, the others compute", [GoesWith<"copy", ["tma"]>]>
]> { let DefaultDoc = "specialized for tma, else unified"; }

def OverlapOption : EnumOption<"overlap", "schedule", OverlapEnum, "what runs under the products", [
  Value<OverlapNone, "nothing">,
  Value<OverlapIntra, "softmax under the same warp group's products">,
  Value<OverlapPingpong, "softmax under another warp group's products: warp groups take turns">,
  Value<OverlapBoth, "both: warp groups take turns at the products">
]> { let InName = "overlap_"; let Default = "none"; }

def GridOption : EnumOption<"grid", "schedule", GridEnum, "how CTAs take work", [
  Value<GridTiles, "a CTA for each tile of query rows">,
  With<GridPersistent, "a CTA for each SM, taking tiles in turn",
       [GoesWith<"roles", ["specialized"]>, GoesWith<"mask", ["none"]>]>,
  With<GridLongestFirst, "a CTA for each SM, fetching tile by tile from a counter in the workspace, the last of a head first where later rows see more or later keys",
       [GoesWith<"roles", ["specialized"]>]>
]> { let Default = "tiles"; }

def ExpOption : EnumOption<"exp", "schedule", ExpEnum, "how exp2 is computed", [
  Value<ExpMufu, "on the special-function unit">,
  Value<ExpMixed, "each n-th of a thread by a polynomial on the FMA units, the others on the special-function unit", Number<2, 32>>
]> { let InName = "exp_"; let Default = "mufu"; }

// Probabilities may be 2^8 times as large as usual, or 2^15 or 2^40 times, and with them P V of a tile.
def InF32 : GoesWith<"accum", ["f32"], "whose range it needs">;

def RescaleOption : EnumOption<"rescale", "schedule", RescaleEnum, "when O and the row sums follow a new row maximum", [
  Value<RescaleAlways, "in every step: the largest term of a row is then exact, and errors are the smallest">,
  With<RescaleLazy, "only in steps in which a row of the warp has grown by more than a factor of 2^8", [InF32]>,
  With<RescaleOptimistic, "skips the row maximum; where a thread's part of a row's sum exceeds 2^15 (bf16: 2^40), the warp's terms and sums come down by a factor",
       [InF32, GoesWith<"overlap", ["intra", "both"]>]>,
  With<RescaleNone, "never, for there is no maximum; only with a form whose score, times log2(e), lies between -80 and 80",
       [InF32, GoesWith<"dtype", ["bf16"], "whose range is that of f32">]>
]> { let InName = "rescale_"; let Default = "always"; }

def TanhOption : EnumOption<"tanh", "schedule", TanhEnum, "how the tanh of a form is computed", [
  Value<TanhApprox, "by the special-function unit's own; absolute error about 1e-5">,
  Value<TanhExp, "by an exp2 and a division; absolute error below 3e-7">
]> { let InName = "tanh_"; let Default = "approx"; }

def GqaOption : EnumOption<"gqa", "schedule", GqaEnum, "which query rows share a tile where several heads have one K/V head", [
  Value<GqaSeparate, "rows of one head">,
  With<GqaPack, "rows of all heads that share a K/V head: each query's heads, then the next query's",
        [GoesWith<"copy", ["ld_st", "cp_async"]>]> // whose rows need not lie at one stride
]> { let InName = "gqa_"; let Default = "separate"; }

def SplitOption : Option<"split", "schedule", IntegerType,
    "how many CTAs share the keys of a tile of query rows; their results are merged in fixed order, by the last of them "
    "where warps share keys, else by a second launch. auto: as the GPU is best filled, or a CTA for each 512 keys with invariant = on"> {
  let With = [GoesWith<"grid", ["tiles"]>];
  let InName = "split_";
  let Default = "1";
  let Min = 1;
  let Max = 128;
  let TakesAuto = 1;
}

def ClusterOption : PassNumber<"cluster",
    "CTAs with neighbouring tiles of query rows that run together: each copies its share of every tile of K and V to all of "
    "them", "kCluster", [GoesWith<"mma", ["wgmma"]>, GoesWith<"grid", ["persistent"]>]> {
  let InName = "cluster_";
  let Default = "1";
  let Min = 1;
  let Max = 2;
}

def QHeldOption : PassNumber<"q_held",
    "slices of 16 columns of Q that stay in registers; the others are read from shared memory in every step",
    "kHeldSlices", [GoesWith<"mma", ["wgmma"]>]> {
  let ColumnsEach = 16;
  let InName = "held_";
  let Default = "0";
  let Min = 0;
  let Max = 16;
}

def SettleApartOption : PassNumber<"settle_apart",
    "1: what a step does where a row has outgrown its maximum stands outside of the loop over whole tiles, so that the loop's "
    "machine code lies in one piece", "kSettleApart", [GoesWith<"mma", ["wgmma"]>, GoesWith<"rescale", ["optimistic"]>]> {
  let InName = "apart_";
  let Default = "0";
  let Min = 0;
  let Max = 1;
}

def HalveMaskedOption : PassNumber<"halve_masked",
    "1: where a warp group's rows see no key of the second half of the last key tile, the group multiplies the first half "
    "alone; where a CTA's groups skip key tiles, and where a mask bounds keys from below, nothing changes",
    "kHalveMasked", [GoesWith<"mma", ["wgmma"]>, GoesWith<"overlap", ["intra", "both"]>]> {
  let InName = "halved_";
  let Default = "0";
  let Min = 0;
  let Max = 1;
}

def PdlOption : PassNumber<"pdl",
    "1: programmatic dependent launch: the kernel sets itself up while the launch before it ends, and lets the next launch "
    "it do so, where a call asks for that (FAGEN_FLAG_PDL)", "kPdl", [GoesWith<"mma", ["wgmma"]>]> {
  let InName = "pdl_";
  let Default = "0";
  let Min = 0;
  let Max = 1;
}

#endif // FAGEN_TD_SPECOPTIONS

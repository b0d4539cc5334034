// fagen: what an op of the IR is made of: operands with their effects, attributes, enumerations. Ops.td has the ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

class Effect<string enumerator> {
  string Enumerator = enumerator;
}
def Read : Effect<"Read">;
def Write : Effect<"Write">;
def ReadWrite : Effect<"ReadWrite">;
def Sync : Effect<"Sync">; // an mbarrier or a counter: any number of threads at once

class MemorySpace<string enumerator> {
  string Enumerator = enumerator;
}
def Global : MemorySpace<"Global">;
def Shared : MemorySpace<"Shared">;
def Fragment : MemorySpace<"Fragment">;

class Operand<string name, Effect effect, list<MemorySpace> spaces, bit optional = 0> {
  string Name = name;
  Effect TheEffect = effect;
  list<MemorySpace> Spaces = spaces;
  bit Optional = optional;
  bit RowsOfWarps = 0;
  bit BehindWarpBarrier = 0;
}
class OptionalOperand<string name, Effect effect, list<MemorySpace> spaces> : Operand<name, effect, spaces, 1>;
/// Row `row` + r is touched by warp r mod warps of the role only: in global memory in whichever part, in shared memory
/// in the tile of each key warp.
class RowsOfWarps<string name, Effect effect, list<MemorySpace> spaces, bit optional = 0>
    : Operand<name, effect, spaces, optional> {
  let RowsOfWarps = 1;
}
/// And each warp has a barrier of its own in the op, before it touches them.
class RowsBehindWarpBarrier<string name, Effect effect, list<MemorySpace> spaces>
    : RowsOfWarps<name, effect, spaces> {
  let BehindWarpBarrier = 1;
}

/// Values that an attribute is spelled by, and the C++ enumeration of them. Enumerators are the values in camel case,
/// unless they are named.
class Enum<string name, string doc, list<string> values, list<string> enumerators = []> {
  string Name = name;
  string Doc = doc;
  list<string> Values = values;
  list<string> Enumerators = enumerators;
}

class AttributeType<string enumerator> {
  string Enumerator = enumerator;
}
def Integer : AttributeType<"Integer">;
def String : AttributeType<"String">;
def Expression : AttributeType<"Expression">;

class Attribute<string name, AttributeType type, bit optional = 0> {
  string Name = name;
  AttributeType TheType = type;
  bit Optional = optional;
  int Min = 0;
  int Max = 0;
  int Default = ?; // of an integer that is absent
  list<string> Values = [];
  Enum TheEnum = ?; // of the values
  bit Mask = 0;
  bit Real = 0;
}
/// An integer of min..max.
class Int<string name, int min, int max, bit optional = 0> : Attribute<name, Integer, optional> {
  let Min = min;
  let Max = max;
}
/// Where it is absent, it is `value`.
class IntOr<string name, int min, int max, int value> : Int<name, min, max, 1> {
  let Default = value;
}
/// 0 or 1; absent is 0.
class Flag<string name> : Int<name, 0, 1, 1>;
/// Any string.
class Str<string name, bit optional = 0> : Attribute<name, String, optional>;
/// A string, one of the enumeration's.
class Choice<string name, Enum type, bit optional = 0, list<string> values = type.Values>
    : Attribute<name, String, optional> {
  let Values = values;
  let TheEnum = type;
}
class Ex<string name, bit optional = 0> : Attribute<name, Expression, optional>;
/// An expression that may also name q and k: the row and the key it is asked about. Where rows are packed, row q is of
/// query floor_div(q, heads_per_kv).
class MaskEx<string name, bit optional = 0> : Ex<name, optional> {
  let Mask = 1;
}

/// A real number, of elements of the op's operands, %name, and of q and k.
class RealEx<string name, bit optional = 0> : MaskEx<name, optional> {
  let Real = 1;
}

/// A truth value, of elements of the op's operands.
class TestEx<string name, bit optional = 0> : RealEx<name, optional>;

def CopyKindEnum : Enum<"CopyKind", "What moves the bytes of a copy.", ["ld_st", "cp_async", "bulk"]>;
def CacheHintEnum : Enum<"CacheHint", "How long a copy stays in L2.", ["evict_first", "evict_last"]>;
def MmaFormEnum : Enum<"MmaForm", "Which operand a product takes transposed.", ["abt", "ab", "atb"]>;
def SumTypeEnum : Enum<"SumType", "What a product sums in, where that is not f32.", ["f16"]>;
def ReductionEnum : Enum<"Reduction", "What a reduction makes of two elements.", ["max", "sum"]>;
def ReachEnum : Enum<"ReduceReach", "Whose elements of a row a reduction is of.", ["thread", "row", "lanes"]>;
def RowUnitEnum : Enum<"RowUnit",
    "What the maximum of a result is, where it is no score of the fragment's: an exponent of two, or of e.", ["log2", "nats"]>;
def ActorEnum : Enum<"Actor", "Who does what an op says: each thread, or one of each warp, group of four warps, or role.",
                     ["thread", "warp", "group", "role"]>;
def BarrierScopeEnum : Enum<"BarrierScope", "Who meets at a barrier.", ["cta", "cluster", "warp", "named"]>;
def FenceKindEnum : Enum<"FenceKind", "What a fence orders accesses for.", ["async_proxy", "mbarrier_init", "mma"]>;
def PlaceNameEnum : Enum<"PlaceName", "Where a policy may put a barrier.",
                         ["after_load", "after_scores", "after_max", "after_exp", "after_pv", "after_tile"]>;

/// The record's name is the enumerator, `name` the spelling in .fair files.
class Op<string name, string summary, list<Operand> operands, list<Attribute> attributes = []> {
  string Name = name;
  string Summary = summary;
  list<Operand> Operands = operands;
  list<Attribute> Attributes = attributes;
  bit HasBody = 0;
  bit HasSite = 0; // waits or synchronises: place-barriers gives it a number in the ledger
}

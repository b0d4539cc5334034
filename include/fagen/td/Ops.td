// fagen: the ops of the IR: operands with their effects, attributes, and what each op means.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// fagen-tblgen -gen-ops writes include/fagen/IR/Ops.h from this file, the table that the parser, the printer and the
// verifier read. -gen-op-classes writes OpClasses.h: for each op a class with its accessors, and a function that makes
// it; -gen-op-enums writes OpEnums.h: what attributes are spelled by. Nothing else lists operands or attributes.
// -gen-op-sync writes OpSync.h from the table at the end: how ops synchronise.

include "fagen/td/OpBase.td"

// Copies from global to shared memory.

def CopyIssue : Op<"copy_issue",
    "rows [row, row + dst.rows) of src to dst, columns from `column` on; rows from limit on become zero, of a view those "
    "beyond it; only if `when`, where given. bulk: one "
    "thread asks the async proxy for it, which counts the bytes of the whole slot off the phase of `full`; cluster: each CTA "
    "of the cluster brings its share of the rows to the same slot of all of them, and all of them ask",
    [Operand<"dst", Write, [Shared]>, Operand<"src", Read, [Global]>, OptionalOperand<"full", Sync, [Shared]>],
    [Choice<"kind", CopyKindEnum>, Ex<"row">, Ex<"limit", 1>, Ex<"when", 1>, Ex<"column", 1>,
     Choice<"hint", CacheHintEnum, 1>, // of bulk copies
     Flag<"running">, // row is where the copy to dst before this one ended
     Flag<"cluster">]>;

def CopyCommit : Op<"copy_commit",
    "closes the group of the cp_async copies issued since the last commit, possibly none", []>;

def CopyWait : Op<"copy_wait",
    "waits until at most `pending` of the newest groups of the executing thread are outstanding; -1: not yet counted", [],
    [Int<"pending", -1, 64>]> {
  let HasSite = 1;
}

def BulkStore : Op<"bulk_store",
    "one thread of the role, or of each group of four warps for the group's rows, asks the async proxy to copy src to "
    "rows [row, row + src.rows) of dst, columns from `first` or `column` on",
    [Operand<"dst", Write, [Global]>, Operand<"src", Read, [Shared]>],
    [Ex<"row">, Ex<"limit", 1>, Choice<"by", ActorEnum, 1, ["group", "role"]>, IntOr<"first", 0, 1024, 0>,
     Ex<"column", 1>]>;

def BulkCommit : Op<"bulk_commit", "closes the group of the bulk_stores that the same thread issued", [],
    [Choice<"by", ActorEnum, 1, ["group", "role"]>]>;

def BulkWait : Op<"bulk_wait", "the same thread waits until at most `pending` of its newest groups still read", [],
    [Int<"pending", 0, 64>, Choice<"by", ActorEnum, 1, ["group", "role"]>]> {
  let HasSite = 1;
}

// Matrix operands and products.

def LoadFragment : Op<"load_fragment", "a matrix operand, or its first columns, from shared memory to registers",
    [Operand<"dst", Write, [Fragment]>, Operand<"src", Read, [Shared]>]>;

// Element by element. An op of the arithmetic between products is a map or a reduction; what several of them together
// are, such as an online softmax, fagen/IR/Patterns.h tells.

def Map : Op<"map",
    "each element of dst becomes value: of the same element of dst, x and y, of a vector of rows the row's, and of its "
    "place (q, k), where row and key are the tile's first; only if `when`, where given; with every, each every-th exp2 of "
    "a thread's by polynomial",
    [Operand<"dst", ReadWrite, [Fragment, Shared]>, OptionalOperand<"x", Read, [Fragment, Shared]>,
     OptionalOperand<"y", Read, [Fragment, Shared]>],
    [RealEx<"value">, Ex<"row", 1>, Ex<"key", 1>, Ex<"when", 1>, Int<"every", 2, 32, 1>]>;

def Reduce : Op<"reduce",
    "dst = the largest element, or the sum, of each row of src, and of `with`. reach thread: of a thread's own elements, to its "
    "registers or to its column of shared memory; row: of all elements of the row; lanes: of the columns that threads left",
    [Operand<"dst", Write, [Fragment, Shared]>, Operand<"src", Read, [Fragment, Shared]>,
     OptionalOperand<"with", Read, [Fragment]>],
    [Choice<"op", ReductionEnum>, Choice<"reach", ReachEnum>]>;

// Warps part there, so nobody synchronises in the body, and it writes no memory that others see.
def Vote : Op<"vote",
    "the body, in warps of which some thread has elements of x and y, of the same place, that pass the test; apart: that is "
    "rare, and the text has the body outside of the loop around; fenced: each thread orders what it reads there before "
    "later accesses of the async proxy",
    [Operand<"x", Read, [Fragment]>, OptionalOperand<"y", Read, [Fragment]>], [TestEx<"test">, Flag<"apart">, Flag<"fenced">]> {
  let HasBody = 1;
}

def Mma : Op<"mma",
    "a product that is complete when the op is: acc = a b^T (abt), a b (ab) or a^T b (atb), added if `accumulate`; ab and "
    "atb of fewer columns than b take its first ones, or those from `first` on",
    [Operand<"acc", ReadWrite, [Fragment, Shared]>, Operand<"a", Read, [Fragment, Shared]>,
     Operand<"b", Read, [Fragment, Shared]>],
    [Choice<"form", MmaFormEnum>, Int<"accumulate", 0, 1>, IntOr<"first", 0, 1024, 0>,
     Choice<"sums", SumTypeEnum, 1>]>; // a tile's sums, before they become acc's f32; f32 where not given

def MmaIssue : Op<"mma_issue",
    "as mma, but asynchronous: a group of four warps issues it, and it reads and writes until mma_wait says so; abt of "
    "fewer columns than b has rows multiplies the first ones",
    [Operand<"acc", ReadWrite, [Fragment]>, Operand<"a", Read, [Fragment, Shared]>, Operand<"b", Read, [Shared]>,
     OptionalOperand<"held", Read, [Fragment]>], // the first columns of a
    [Choice<"form", MmaFormEnum>, Int<"accumulate", 0, 1>, IntOr<"first", 0, 1024, 0>]>;

def MmaCommit : Op<"mma_commit", "closes the group of the products that the warps issued since the last commit", []>;

def MmaWait : Op<"mma_wait", "waits until at most `pending` of the newest groups of products are outstanding", [],
    [Int<"pending", 0, 7>]> {
  let HasSite = 1;
}

def Convert : Op<"convert", "p = s, rounded once to the type of p, and 0 in columns that s does not have",
    [Operand<"p", Write, [Fragment, Shared]>, Operand<"s", Read, [Fragment, Shared]>]>;

// Results.

def StorePartial : Op<"store_partial", "a key warp's result, not normalised, to shared memory",
    [Operand<"partial", Write, [Shared]>, Operand<"o", Read, [Fragment]>, Operand<"m", Read, [Fragment]>,
     Operand<"l", Read, [Fragment]>]>;

def StoreMerged : Op<"store_merged", "merges the results of the key warps in fixed order and stores rows below limit",
    [Operand<"o", Write, [Global]>, OptionalOperand<"lse", Write, [Global]>, Operand<"partial", Read, [Shared]>],
    [Ex<"row">, Ex<"limit", 1>, Choice<"unit", RowUnitEnum, 1>]>;

def Store : Op<"store",
    "rows [row, row + dst rows) below limit to global memory, columns from `column` on; of a view what it has",
    [Operand<"dst", Write, [Global]>, Operand<"o", Read, [Fragment]>], [Ex<"row">, Ex<"limit", 1>, Ex<"column", 1>]>;

def StageOutput : Op<"stage_output",
    "each warp's rows of o, rounded, to the same rows of dst: for a bulk_store; where dst has fewer columns, those from "
    "`first` on",
    [Operand<"dst", Write, [Shared]>, Operand<"o", Read, [Fragment]>], [IntOr<"first", 0, 1024, 0>]>;

def StoreLse : Op<"store_lse", "the log-sum-exp of each row below limit, if the caller asked for it",
    [Operand<"dst", Write, [Global]>, Operand<"m", Read, [Fragment]>, Operand<"l", Read, [Fragment]>],
    [Ex<"row">, Ex<"limit", 1>, Choice<"unit", RowUnitEnum, 1>,
     RealEx<"factor", 1>]>; // of m to nats, where the unit does not say

def StoreNumber : Op<"store_number", "one thread of the role stores a whole number to row `row` of dst, which are u32 or i32",
    [Operand<"dst", Write, [Global]>], [Ex<"row">, Ex<"number">]>;

def StoreSplit : Op<"store_split", "a result, not normalised, with m and l: rows below limit of part `split` of dst",
    [Operand<"dst", Write, [Global]>, Operand<"o", Read, [Fragment]>, Operand<"m", Read, [Fragment]>,
     Operand<"l", Read, [Fragment]>], [Ex<"row">, Ex<"limit">, Ex<"split">]>;

def StoreMergedSplit : Op<"store_merged_split",
    "merges the results of the key warps in fixed order: rows below limit of part `split` of dst, unless that is the only "
    "one; of a view with an index the part at its position",
    [RowsOfWarps<"dst", Write, [Global]>, RowsOfWarps<"partial", Read, [Shared]>],
    [Ex<"row">, Ex<"limit", 1>, Ex<"split", 1>, Choice<"unit", RowUnitEnum, 1>, RealEx<"exponent", 1>]>;

def Combine : Op<"combine", "merges the parts of parts in fixed order, leaves zeros there, and stores rows below limit",
    [Operand<"o", Write, [Global]>, OptionalOperand<"lse", Write, [Global]>, Operand<"parts", ReadWrite, [Global]>],
    [Ex<"row">, Ex<"limit">, Choice<"unit", RowUnitEnum, 1>]>;

// A launch before the one that multiplies, which judges its key tiles by what stands there.
def ClassifyTiles : Op<"classify_tiles",
    "each warp takes key tiles in turn and stores what the rows below limit see of its keys, which begin at `row` and `key`: "
    "0 none, 2 all, else 1, by the test of each place (q, k); without these where `seen` is false: 0, or `whole` true: 2",
    [Operand<"dst", Write, [Global]>],
    [TestEx<"test">, Ex<"row">, Ex<"key">, Ex<"limit">, TestEx<"seen", 1>, TestEx<"whole", 1>]>;

// A launch before the one that works on the tiles.
def PlanRows : Op<"plan_rows",
    "tiles of `tile` rows of sequences one after the other, which follow from their offsets and used lengths: where tile i begins "
    "in rows, ascending, and where the last one ends; its first key, its keys and the last key of its first row in words; how many "
    "there are, and their numbers, those that visit the most tiles of `tile_keys` keys first. Other rows have tiles without keys",
    [Operand<"rows", Write, [Global]>, Operand<"words", Write, [Global]>, Operand<"order", Write, [Global]>,
     Operand<"count", Write, [Global]>, Operand<"offsets", Read, [Global]>, Operand<"key_offsets", Read, [Global]>,
     Operand<"used", Read, [Global]>, Operand<"used_keys", Read, [Global]>],
    [Int<"tile", 8, 1024>, Int<"tile_keys", 8, 1024>, Flag<"causal">, Ex<"total">, Ex<"total_keys">, Ex<"uses">, Ex<"uses_keys">]>;

// Each warp counts itself after what store_merged_split stored of its rows; the last split's sees what those of all
// others did.
def CombineLast : Op<"combine_last",
    "executed by the last split to arrive, counted for each warp's rows: merges all parts of these rows as combine does; a "
    "single split is taken from where the key warps left it. The parts of a view with an index are as many as the "
    "dimension of its tensor that the index counts has",
    [RowsOfWarps<"o", Write, [Global]>, RowsOfWarps<"lse", Write, [Global], 1>,
     RowsBehindWarpBarrier<"parts", ReadWrite, [Global]>, RowsOfWarps<"partial", Read, [Shared]>],
    [Ex<"row">, Ex<"limit", 1>, Choice<"unit", RowUnitEnum, 1>,
     RealEx<"factor", 1>, RealEx<"exponent", 1>]>; // of m to nats and to exponents of two, where the unit does not say

// A launch after those that left the parts.
def MergeParts : Op<"merge_parts",
    "the warps of the role merge one row, each some of its columns: the sum of the parts' results, which are normalised, each "
    "weighed by its log-sum-exp in nats, in the order of the parts, and their common log-sum-exp. The parts of views with an "
    "index are as many as the first dimension of their tensor",
    [Operand<"o", Write, [Global]>, Operand<"lse", Write, [Global]>, Operand<"parts", Read, [Global]>,
     Operand<"sums", Read, [Global]>], [Ex<"row">]>;

def Transpose : Op<"transpose",
    "columns [column, column + tile) of dst become rows of src, all of them, each warp of the role its part; those that src has "
    "not become zero. Elements are e4m3, copied as they are, and rows of dst as many as columns of src",
    [Operand<"dst", Write, [Global]>, Operand<"src", Read, [Global]>], [Ex<"column">, Int<"tile", 128, 1024>]>;

// Synchronisation and control.

// Named warps may be divided: group g of `groups`, with barrier id + g, is the g-th run of neighbouring warps, or where
// interleaved every warp w with w mod groups == g. `place` is the place of a policy where the barrier stands; it has
// none when a hazard asked for it.
def Barrier : Op<"barrier",
    "all threads of the CTA, of its cluster, of each warp, or of the named warps arrive before any goes on", [],
    [Choice<"scope", BarrierScopeEnum>, Int<"id", 0, 15, 1>, Int<"first_warp", 0, 31, 1>, Int<"warps", 1, 32, 1>,
     IntOr<"groups", 2, 16, 1>, Flag<"interleaved">, Choice<"place", PlaceNameEnum, 1>]> {
  let HasSite = 1;
}

// Groups of four warps of a role take turns: group g has named barrier id + g, where it waits for the group before it,
// of the first one the last, to pass the turn on. With `group` only that one does.

def AwaitTurn : Op<"await_turn", "each group of four warps of the role waits for its turn", [],
    [Int<"id", 1, 15>, Int<"groups", 2, 8>, Int<"group", 0, 7, 1>]> {
  let HasSite = 1;
}

def PassTurn : Op<"pass_turn", "each group of four warps gives the turn to the next one, and goes on", [],
    [Int<"id", 1, 15>, Int<"groups", 2, 8>, Int<"group", 0, 7, 1>]> {
  let HasSite = 1;
}

// An mbarrier counts phases. That of position p is phase p / stages of slot p mod stages; it completes when as many
// arrivals as mbarrier_init said have come, and all bytes that they announced.

def MbarrierInit : Op<"mbarrier_init", "one thread sets how many arrivals a phase of this slot takes",
    [Operand<"bar", Write, [Shared]>], [Int<"arrivals", 1, 1024>]>;

def Arrive : Op<"arrive",
    "arrives at the phase of bar's position: every thread, one of each warp, of each group of four warps, or of the "
    "role; `bytes` more are to come from bulk copies; cluster: in each CTA of the cluster, thread n of them in CTA n",
    [Operand<"bar", Sync, [Shared]>],
    [Choice<"by", ActorEnum>, Ex<"bytes", 1>, Flag<"cluster">]> {
  let HasSite = 1;
}

def Wait : Op<"wait",
    "waits until the phase of bar's position is complete; that before the first one is. `by` says who waits",
    [Operand<"bar", Sync, [Shared]>], [Choice<"by", ActorEnum>]> {
  let HasSite = 1;
}

// Launches of a stream follow each other. One that may begin before the launch before it has ended touches global memory
// after this op only.
def AwaitLaunches : Op<"await_launches",
    "one thread of the role, or each, waits until the launches before this one have ended, and sees what they wrote; from "
    "here on the next launch may begin", [], [Choice<"by", ActorEnum, 1, ["thread", "role"]>]>;

// Tickets for tiles of query rows, from a counter that all CTAs of a launch share. A CTA begins with its own number as
// ticket; where no tile is left, what is handed over says so.

def FetchTile : Op<"fetch_tile", "one thread draws the CTA's next ticket from the counter",
    [Operand<"next", Write, [Fragment]>, Operand<"counter", Sync, [Global]>]>;

def HandTile : Op<"hand_tile", "the same thread writes which tile the ticket stands for",
    [Operand<"dst", Write, [Shared]>, Operand<"next", Read, [Fragment]>]>;

def TakeTile : Op<"take_tile", "every thread reads which tile the next turn works on",
    [Operand<"next", Write, [Fragment]>, Operand<"src", Read, [Shared]>]>;

def Fence : Op<"fence",
    "each thread orders its accesses before it with what comes after: of the async proxy (async_proxy), at mbarriers "
    "that it initialised (mbarrier_init), by products from registers that it used (mma)", [],
    [Choice<"kind", FenceKindEnum>]> {
  let HasSite = 1;
}

// `carry` is 0 in the first turn and grows by `step` after each; lets may have other values in each turn then, as they
// follow from what the turn works on. `about` says what a turn does, in the text above the loop.
def Loop : Op<"loop", "the body for each value of variable in [begin, end)", [],
    [Str<"variable">, Ex<"begin">, Ex<"end">, Str<"carry", 1>, Ex<"step", 1>, Str<"name", 1>, Str<"about", 1>]> {
  let HasBody = 1;
}

def If : Op<"if", "the body, if condition is true; it is the same for all threads of the role", [],
    [Ex<"condition">]> {
  let HasBody = 1;
}

def Place : Op<"place", "where a policy may put a barrier; place-barriers removes it", [],
    [Choice<"name", PlaceNameEnum>]>;

// How ops synchronise: a row for an op, or one for each value of an attribute that decides. An op without a row is done by
// all threads of the role when the op is, and tells nobody of anything.

class Agent<string doc> {
  string Doc = doc;
}
def Threads : Agent<"those of the role">;
def CpAsync : Agent<"a thread's own copies, alongside it">;
def AsyncProxy : Agent<"the copy engine, asked by one thread">;
def TensorCores : Agent<"those of a group of four warps, which read shared memory as the async proxy does">;

class Means<string doc> {
  string Doc = doc;
}
def Nothing : Means<"nothing: it is done when the op is, and tells nobody">;
def CopyGroups : Means<"groups of cp_async copies, each thread for its own">;
def StoreGroups : Means<"groups of bulk stores, each thread for its own; done: the source is read">;
def ProductGroups : Means<"groups of asynchronous products, in the order of their commits">;
def Phases : Means<"phases of mbarriers: a copy's bytes, or arrivals">;
def WarpBarrier : Means<"the barrier of each warp">;
def CtaBarrier : Means<"the CTA's">;
def ClusterBarrier : Means<"the cluster's">;
def NamedBarrier : Means<"one of a range of warps, or one of each of its groups">;
def Turns : Means<"named barriers where one group of warps may arrive and the next one waits">;
def AsyncFence : Means<"own accesses, for the async proxy">;
def InitFence : Means<"own mbarrier_inits, for the async proxy">;
def ProductFence : Means<"own accesses of registers, for products">;
def Tickets : Means<"the number of the next tile, in shared memory">;
def Counters : Means<"counters in global memory, touched by atomics only">;

class SyncOf<Op op, Agent agent, Means done, Means releases, Means acquires> {
  Op TheOp = op;
  string Attribute = ""; // the row is for ops whose attribute has this value
  string Value = "";
  Agent TheAgent = agent;
  Means Done = done;         // what says that it is done
  Means Releases = releases; // by what it tells others how far its threads, or the groups that it closes, have come
  Means Acquires = acquires; // by what its threads learn of others
  Means NeedsFence = AsyncFence; // what must stand between its accesses by threads and later ones of the async proxy
  bit ByActor = 0;           // done by those that `by` names, by one thread of the role where that does not say
  bit Together = 0;          // the lanes of a warp come to it together, where the family of instructions is one of warps
}
class SyncWhere<Op op, string attribute, string value, Agent agent, Means done, Means releases, Means acquires>
    : SyncOf<op, agent, done, releases, acquires> {
  let Attribute = attribute;
  let Value = value;
}

//                                                  agent        done           releases        acquires
def : SyncWhere<CopyIssue, "kind", "ld_st",         Threads,     Nothing,       Nothing,        Nothing>;
def : SyncWhere<CopyIssue, "kind", "cp_async",      CpAsync,     CopyGroups,    Nothing,        Nothing>;
def : SyncOf<CopyCommit,                            Threads,     Nothing,       CopyGroups,     Nothing>;
def : SyncOf<CopyWait,                              Threads,     Nothing,       Nothing,        CopyGroups>;
let ByActor = 1 in {
def : SyncWhere<CopyIssue, "kind", "bulk",          AsyncProxy,  Phases,        Nothing,        Nothing>;
def : SyncOf<BulkStore,                             AsyncProxy,  StoreGroups,   Nothing,        Nothing>;
def : SyncOf<BulkCommit,                            Threads,     Nothing,       StoreGroups,    Nothing>;
def : SyncOf<BulkWait,                              Threads,     Nothing,       Nothing,        StoreGroups>;
}
let Together = 1 in {
def : SyncOf<LoadFragment,                          Threads,     Nothing,       Nothing,        Nothing>;
def : SyncOf<Mma,                                   Threads,     Nothing,       Nothing,        Nothing>;
def : SyncOf<MmaIssue,                              TensorCores, ProductGroups, Nothing,        Nothing>;
def : SyncOf<Vote,                                  Threads,     Nothing,       Nothing,        Nothing>;
}
def : SyncOf<MmaCommit,                             Threads,     Nothing,       ProductGroups,  Nothing>;
def : SyncOf<MmaWait,                               Threads,     Nothing,       Nothing,        ProductGroups>;
def : SyncOf<CombineLast,                           Threads,     Nothing,       Counters,       Counters>;
def : SyncWhere<Barrier, "scope", "warp",           Threads,     Nothing,       WarpBarrier,    WarpBarrier>;
def : SyncWhere<Barrier, "scope", "cta",            Threads,     Nothing,       CtaBarrier,     CtaBarrier>;
def : SyncWhere<Barrier, "scope", "cluster",        Threads,     Nothing,       ClusterBarrier, ClusterBarrier>;
def : SyncWhere<Barrier, "scope", "named",          Threads,     Nothing,       NamedBarrier,   NamedBarrier>;
def : SyncOf<AwaitTurn,                             Threads,     Nothing,       Turns,          Turns>;
def : SyncOf<PassTurn,                              Threads,     Nothing,       Turns,          Nothing>;
let ByActor = 1 in {
let NeedsFence = InitFence in
def : SyncOf<MbarrierInit,                          Threads,     Nothing,       Nothing,        Nothing>;
def : SyncOf<Arrive,                                Threads,     Nothing,       Phases,         Nothing>;
def : SyncOf<Wait,                                  Threads,     Nothing,       Nothing,        Phases>;
def : SyncOf<StoreNumber,                           Threads,     Nothing,       Nothing,        Nothing>;
def : SyncOf<FetchTile,                             Threads,     Nothing,       Nothing,        Counters>;
def : SyncOf<HandTile,                              Threads,     Nothing,       Tickets,        Nothing>;
}
def : SyncOf<TakeTile,                              Threads,     Nothing,       Nothing,        Tickets>;
def : SyncWhere<Fence, "kind", "async_proxy",       Threads,     Nothing,       AsyncFence,     Nothing>;
def : SyncWhere<Fence, "kind", "mbarrier_init",     Threads,     Nothing,       InitFence,      Nothing>;
def : SyncWhere<Fence, "kind", "mma",               Threads,     Nothing,       ProductFence,   Nothing>;

// fagen: the passes, in the order of the default pipeline where they are part of it, and why each stands where it stands.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The barrier passes stand after allocate-shared: buffers may overlay others, so who meets whom is a question about
// absolute bytes, which exist only once every buffer has its offset.

// Kernels that a pass is for; the others stay as they are. The function stands in lib/Passes/Pipeline.cpp.
class Kernels<string function, string doc> {
  string Function = function;
  string Doc = doc;
}
def AnyKernel : Kernels<"isAny", "any kernel">;
def AskingForLoadRole : Kernels<"asksForLoadRole", "kernels of one role whose schedule asks for warps that load">;
def OfAsyncProducts : Kernels<"multipliesBeside", "kernels whose products go on alongside the warps that issue them">;
def OfRoles : Kernels<"hasRoles", "kernels of several roles">;
def Persistent : Kernels<"persists", "kernels of several roles whose CTAs work on several tiles">;
def DrawingTiles : Kernels<"drawsTiles", "kernels of several roles whose CTAs draw their tiles">;
def StagingResults : Kernels<"stagesResults", "kernels of several roles whose results leave through shared memory">;
def TakingTurns : Kernels<"takesTurns", "kernels of several roles with overlap = both or pingpong">;

// A pass goes from one phase of IR.h to another: it needs at least the first, and leaves at most the second before it.
class Pass<string name, string summary, string needs, string ensures> {
  string Name = name; // --run-pass=, lib/Passes/<UpperCamel>.cpp and lowerCamel() all derive from it
  string Summary = summary;
  string Needs = needs;
  string Ensures = ensures;
  string Place = "";        // in the pipeline: why it stands there
  Kernels For = AnyKernel;
  bit NeedsVariant = 0;     // it reads the schedule, so it cannot run on IR from text
  string From = "Split";
  string To = "Split";
  bit InPipeline = 1;       // else it is only run by name
}

def ResolveOptions : Pass<"resolve-options",
  "derives every constant of the kernel from its schedule",
  "a checked variant",
  "no option is left to choose; kernel constants carry their origin"> {
  let Place = "First: from here on numbers are named constants that know their spec key.";
  let NeedsVariant = 1;
  let From = "Built";
  let To = "Built";
}
def BuildTiles : Pass<"build-tiles",
  "builds buffers, rings and the body of one kernel",
  "resolved options",
  "a body over whole key tiles, one loop, no masking split, no pipelining"> {
  let Place = "The algorithm as plain as it can be written: all later passes move and add ops, none needs to know "
              "attention.";
  let NeedsVariant = 1;
  let From = "Built";
  let To = "Built";
}
def SplitMaskLoops : Pass<"split-mask-loops",
  "sorts key tiles into full, partial and empty by intervals of the mask, and splits the loop; where the mask bounds "
  "keys from below, too, steps are counted from the first tile that some row sees; if visibility depends on tensor elements, "
  "adds a preceding launch that classifies the tiles",
  "one loop over key tiles with the mask as an expression",
  "interior tiles carry no masking op; empty tiles are not visited; guards stay where a score may be -inf itself"> {
  let Place = "Before pipelining: there must be one copy of K and V to take as pattern, and the final loops to run "
              "ahead of.";
  let From = "Built";
}
def SplitRoles : Pass<"split-roles",
  "gives bulk copies to warps that do nothing else",
  "the loops are final",
  "role load copies, role math computes; nothing orders them yet"> {
  let Place = "After splitting: the copies of all loops make one loop of their own.";
  let For = AskingForLoadRole;
}
def IssueProducts : Pass<"issue-products",
  "makes products of warp groups asynchronous: fence, issue, commit, wait",
  "only softmax ops stand between the two products of a step",
  "every product is complete where its result is used"> {
  let Place = "Copies are out of the way: what is left between two products is what can run under them.";
  let For = OfAsyncProducts;
}
def SettleRows : Pass<"settle-rows",
  "takes row maxima out of interior steps; terms come down, or are done again, where their sums show that the old maximum is too small",
  "products are rotated",
  "with rescale = optimistic a step computes its terms with the old maximum; those that are too large do not last"> {
  let Place = "Products overlap the softmax: only then is there a step to shorten. Before anybody asks who reads "
              "which slot.";
  let For = OfAsyncProducts;
}
def FoldScores : Pass<"fold-scores",
  "computes what a form makes of scores together with their powers, in steps that take no maximum and mask nothing",
  "settle-rows has taken the maxima out that it can",
  "such a step has one map less"> {
  let Place = "The last maximum that can go has gone: between a score and its power nothing is left in some steps.";
}
def RotateCopies : Pass<"rotate-copies",
  "copies K and V in the order in which rotated products use them",
  "products have their final place; copies of a tile stand in one loop",
  "K(0) comes before Q, and V(j - 1) after K(j)"> {
  let Place = "Products have their place, and copies follow them. Still before anybody waits for them.";
  let For = OfRoles;
}
def OrderRoles : Pass<"order-roles",
  "lets roles hand each other the slots of rings at mbarriers",
  "copies and products have their final place",
  "each tile is waited for before it is read, each slot before it is filled"> {
  let Place = "Products have their place: from it follows who waits for which slot. Still before allocation: it "
              "adds mbarriers.";
  let For = OfRoles;
}
def HoldQuery : Pass<"hold-query",
  "keeps some slices of Q in registers",
  "the roles order each other; a tile's Q is waited for in one place",
  "with q_held = n scores take n slices of Q from registers; the slot is read no later than before"> {
  let Place = "Q's arrival is waited for: what is kept of it can be loaded. Before tiles follow each other.";
  let For = OfRoles;
}
def SkipMaskedTiles : Pass<"skip-masked-tiles",
  "lets each warp group work on the key tiles that its own rows see",
  "the roles order each other",
  "a group does nothing with tiles that are masked for its rows, but leaves their slots"> {
  let Place = "Who leaves a slot where is known: warp groups can leave some early. Before anything goes around or "
              "after that.";
  let For = OfRoles;
}
def PersistTiles : Pass<"persist-tiles",
  "lets a CTA work on one tile of query rows after the other",
  "the roles order each other",
  "positions go on from tile to tile; Q is handed over like a slot of a ring"> {
  let Place = "Roles are in step: the loop over tiles goes around what is there. Still before allocation, as above.";
  let For = Persistent;
}
def FetchTiles : Pass<"fetch-tiles",
  "draws the tiles of a CTA from a counter instead of handing them out beforehand",
  "CTAs work on one tile after the other",
  "every turn hands the number of the next tile from the thread that draws it to all others"> {
  let Place = "The loop over tiles is there: where it gets their numbers from is a question of its own.";
  let For = DrawingTiles;
}
def StageOutput : Pass<"stage-output",
  "gives Q a second slot; results leave through the slot that was read, by a bulk store of each group of warps; where no "
  "second slot fits they leave in slices, through a place of their own",
  "a CTA works on one tile after the other",
  "the next tile's Q comes while this one is used; a slot is filled when the store has read it"> {
  let Place = "Tiles follow each other: only then is there a second slot of Q, and something that a store may run "
              "under.";
  let For = StagingResults;
}
def TakeTurns : Pass<"take-turns",
  "lets warp groups take turns at the tensor cores",
  "products have their final place, and loops over tiles are there",
  "each group issues the products of a step in its turn only; nobody waits for a turn for ever"> {
  let Place = "All loops are there: turns begin before them and end after them.";
  let For = TakingTurns;
}
def HalveMaskedTiles : Pass<"halve-masked-tiles",
  "lets a warp group multiply the half of the last key tile that its rows see",
  "loops over key tiles, waits, arrivals and turns are in place",
  "with halve_masked = 1 the first step has half as many scores where no row of the group sees the other half"> {
  let Place = "A step is copied as a whole, with all who wait in it.";
  let For = OfRoles;
}
def OverlapLaunches : Pass<"overlap-launches",
  "lets a kernel set itself up while the launch before it ends",
  "all roles meet at a barrier before they touch global memory",
  "with pdl = 1 each role waits for earlier launches after that barrier, or first of all where lets read memory"> {
  let Place = "What stands before the roles' first barrier is final. Before that barrier may become a cluster's.";
  let For = OfRoles;
}
def FormClusters : Pass<"form-clusters",
  "lets the CTAs of a cluster share their copies of K and V",
  "roles order each other, and loops over tiles are there",
  "each CTA copies its share of a tile to all; a slot is filled when all of them have left it; none ends before its peers"> {
  let Place = "Nothing is added any more that begins or ends a role: barriers of the cluster stand around it.";
  let For = OfRoles;
}
def PipelineLoads : Pass<"pipeline-loads",
  "moves copies ahead by the number of stages and inserts commits and waits",
  "the loop is final",
  "each ring read waits for the copy of its position, with exact pending counts"> {
  let Place = "After splitting: copies run ahead across the border of two loops. Beyond this point no copy or wait "
              "is added.";
  let To = "Pipelined";
}
def DropIdleCopies : Pass<"drop-idle-copies",
  "removes copies whose `when` no problem ever makes true",
  "positions and guards of copies are final",
  "some problem issues each copy that is left"> {
  let Place = "Right after: what it guards against in vain is taken out before anybody orders it.";
  let From = "Pipelined";
  let To = "Pipelined";
}
def StrengthReduceCopies : Pass<"strength-reduce-copies",
  "lets copies of tiles that follow each other keep a running address",
  "copies are final",
  "the copies of a ring are all `running`, or none"> {
  let Place = "After it: the copies that are left have their final order.";
  let From = "Pipelined";
  let To = "Pipelined";
}
def AssignLayouts : Pass<"assign-layouts",
  "gives each shared buffer its layout",
  "all shared buffers exist",
  "every shared buffer has a layout that its readers and writers share"> {
  let Place = "All buffers exist now; offsets and accesses depend on their layout.";
  let From = "Pipelined";
  let To = "LaidOut";
}
def AllocateShared : Pass<"allocate-shared",
  "gives each shared buffer its offset",
  "layouts are final",
  "no two live buffers overlap except by overlay; the total is what the checks of the spec read"> {
  let Place = "Beyond this point no shared buffer moves.";
  let From = "LaidOut";
  let To = "Allocated";
}
def PlaceBarriers : Pass<"place-barriers",
  "covers the hazards that copies, waits and ownership leave open, by the schedule's policy",
  "layouts and offsets are final; places are marked",
  "every hazard is covered; no place marker is left; the ledger lists what each barrier covers"> {
  let Place = "The last pass that changes ops: hazards are those of the final order and the final bytes.";
  let From = "Allocated";
  let To = "Placed";
}
def VerifyBounds : Pass<"verify-bounds",
  "proves that no index of an access to global memory lies outside of its extent, whatever index tensors hold, and holds lets that are read to what they may be",
  "a kernel with parameters of its own; others stay as they are",
  "each index lies inside, by conditions, limits and clamps that stand in the IR; no two roles read a trip count each"> {
  let Place = "Last of those that may change the IR, by lets: the accesses and conditions are those of the text.";
  let From = "Placed";
  let To = "Placed";
}
def VerifyBarriers : Pass<"verify-barriers",
  "proves the final kernel free of races and of hangs",
  "the final IR",
  "every hazard is covered, every barrier is reached by its participants equally often, and each op reads the tile that it means"> {
  let Place = "Proof, not trust: hazards recomputed on the final IR; one left open is our mistake.";
  let From = "Placed";
  let To = "Verified";
}
def VerifyProducts : Pass<"verify-products",
  "finds what would make ptxas let each product of a warp group wait for the one before",
  "a proved kernel",
  "no sums are read, changed or begun anew under products so that ptxas serialises them, and what is held fits a thread's registers"> {
  let Place = "Last of all: it is about speed, and what a race would break comes first.";
  let For = OfAsyncProducts;
  let From = "Verified";
  let To = "Verified";
}

def PrintHazards : Pass<"print-hazards",
  "lists every hazard and what covers it",
  "layouts are final",
  "the IR is unchanged"> {
  let From = "LaidOut";
  let To = "Built"; // it only looks: it leaves an earlier phase, and runs in all later
  let InPipeline = 0;
}

def PrintTileMutants : Pass<"print-tile-mutants",
  "shifts each copy and use of a ring, and lists what verify-barriers says",
  "barriers are final",
  "the IR is unchanged"> {
  let From = "Placed";
  let To = "Built"; // as print-hazards
  let InPipeline = 0;
}

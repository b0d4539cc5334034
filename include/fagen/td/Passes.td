// fagen: the passes, in the order of the default pipeline where they are part of it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

class Pass<string name, string summary, string needs, string ensures> {
  string Name = name; // --run-pass=, lib/Passes/<UpperCamel>.cpp and lowerCamel() all derive from it
  string Summary = summary;
  string Needs = needs;
  string Ensures = ensures;
  bit InPipeline = 1; // else it is only run by name
}

def ResolveOptions : Pass<"resolve-options",
  "derives every constant of the kernel from its schedule",
  "a checked variant",
  "no option is left to choose; kernel constants carry their origin">;
def BuildTiles : Pass<"build-tiles",
  "builds buffers, rings and the body of one kernel",
  "resolved options",
  "a body over whole key tiles, one loop, no masking split, no pipelining">;
def SplitMaskLoops : Pass<"split-mask-loops",
  "sorts key tiles into full, partial and empty by intervals of the mask, and splits the loop; where the mask bounds "
  "keys from below, too, steps are counted from the first tile that some row sees",
  "one loop over key tiles with the mask as an expression",
  "interior tiles carry no masking op; empty tiles are not visited; guards stay where a score may be -inf itself">;
def SplitRoles : Pass<"split-roles",
  "gives bulk copies to warps that do nothing else",
  "the loops are final",
  "role load copies, role math computes; nothing orders them yet">;
def IssueProducts : Pass<"issue-products",
  "makes products of warp groups asynchronous: fence, issue, commit, wait",
  "only softmax ops stand between the two products of a step",
  "every product is complete where its result is used">;
def SettleRows : Pass<"settle-rows",
  "takes row maxima out of interior steps; terms come down, or are done again, where their sums show that the old maximum is too small",
  "products are rotated",
  "with rescale = optimistic a step computes its terms with the old maximum; those that are too large do not last">;
def FoldScores : Pass<"fold-scores",
  "computes what a form makes of scores together with their powers, in steps that take no maximum and mask nothing",
  "settle-rows has taken the maxima out that it can",
  "such a step has one map less">;
def RotateCopies : Pass<"rotate-copies",
  "asks for K and V in the order in which rotated products use them",
  "products have their final place; copies of a tile stand in one loop",
  "K(0) comes before Q, and V(j - 1) behind K(j)">;
def OrderRoles : Pass<"order-roles",
  "lets roles hand each other the slots of rings at mbarriers",
  "copies and products have their final place",
  "each tile is waited for before it is read, each slot before it is filled">;
def HoldQuery : Pass<"hold-query",
  "keeps some slices of Q in registers",
  "the roles order each other; a tile's Q is waited for in one place",
  "with q_held = n scores take n slices of Q from registers; the slot is read no later than before">;
def SkipMaskedTiles : Pass<"skip-masked-tiles",
  "lets each warp group work on the key tiles that its own rows see",
  "the roles order each other",
  "a group does nothing with tiles that are masked for its rows, but leaves their slots">;
def PersistTiles : Pass<"persist-tiles",
  "lets a CTA work on one tile of query rows after the other",
  "the roles order each other",
  "positions go on from tile to tile; Q is handed over like a slot of a ring">;
def FetchTiles : Pass<"fetch-tiles",
  "draws the tiles of a CTA from a counter instead of handing them out beforehand",
  "CTAs work on one tile after the other",
  "every turn hands the number of the next tile from the thread that draws it to all others">;
def StageOutput : Pass<"stage-output",
  "gives Q a second slot; results leave through the slot that was read, by a bulk store of each group of warps; where no "
  "second slot fits they leave in slices, through a place of their own",
  "a CTA works on one tile after the other",
  "the next tile's Q comes while this one is used; a slot is filled when the store has read it">;
def TakeTurns : Pass<"take-turns",
  "lets warp groups take turns at the tensor cores",
  "products have their final place, and loops over tiles are there",
  "each group asks for the products of a step in its turn only; nobody waits for a turn for ever">;
def FormClusters : Pass<"form-clusters",
  "lets the CTAs of a cluster share their copies of K and V",
  "roles order each other, and loops over tiles are there",
  "each CTA copies its share of a tile to all; a slot is filled when all of them have left it; none ends before its peers">;
def PipelineLoads : Pass<"pipeline-loads",
  "moves copies ahead by the number of stages and inserts commits and waits",
  "the loop is final",
  "each ring read waits for the copy of its position, with exact pending counts">;
def DropIdleCopies : Pass<"drop-idle-copies",
  "removes copies whose `when` no problem ever makes true",
  "positions and guards of copies are final",
  "some problem issues each copy that is left">;
def StrengthReduceCopies : Pass<"strength-reduce-copies",
  "lets copies of tiles that follow each other keep a running address",
  "copies are final",
  "the copies of a ring are all `running`, or none">;
def AssignLayouts : Pass<"assign-layouts",
  "gives each shared buffer its layout",
  "all shared buffers exist",
  "every shared buffer has a layout that its readers and writers share">;
def AllocateShared : Pass<"allocate-shared",
  "gives each shared buffer its offset",
  "layouts are final",
  "no two live buffers overlap except by overlay; the total is what the checks of the spec read">;
def PlaceBarriers : Pass<"place-barriers",
  "covers the hazards that copies, waits and ownership leave open, by the schedule's policy",
  "layouts and offsets are final; places are marked",
  "every hazard is covered; no place marker is left; the ledger lists what each barrier covers">;
def VerifyBarriers : Pass<"verify-barriers",
  "proves the final kernel free of races and of hangs",
  "the final IR",
  "every hazard is covered and every barrier is reached by its participants equally often">;

let InPipeline = 0 in
def PrintHazards : Pass<"print-hazards",
  "lists every hazard and what covers it",
  "layouts are final",
  "the IR is unchanged">;

// fagen: matrix instructions: shape, types, operand fragments, and what they ask of tiles and head dims.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

include "fagen/td/Features.td"
include "fagen/td/SpecOptions.td"

// The values of a key that kernels of a family are generated for, the best first: it is the default of keys that have
// none of their own. Keys that a family does not list take any value.
class Takes<string key, list<string> values, string because = ""> : GoesWith<key, values, because>;

// Products that are complete when they return leave nothing for other work to run under.
class Complete<list<Takes> more> {
  list<Takes> All = !listconcat(more, [Takes<"overlap", ["none"]>, Takes<"rescale", ["always", "lazy", "none"]>]);
}

// What kernels must know of all instructions of a family.
class MmaFamily<Case family> {
  Case Family = family;
  bit Collective = 1;    // the threads of a warp, or of a unit, work on a product together; else each has elements alone
  bit Asynchronous = 0;  // a product is issued and waited for
  bit KeepsResults = 1;  // which lane holds which element of a result is known: results stay in registers
  bit WidensRight = 0;   // takes a right operand of one-byte floats next to a left one of 16 bits
  int UnitWarps = 1;     // that issue a product together
  // Device functions, by form; Add: the product is added to what is there. They return when it is complete, or was
  // issued. Empty: there is none.
  string Abt = "mma_abt";
  string AddAbt = "mma_add_abt";
  string Ab = "mma_first_ab";
  string AddAb = "mma_ab";
  string Atb = "mma_atb";
  string AddAtb = "mma_add_atb";
  string Async = "";     // what begins the names of ptx functions that fence, commit and wait for products
  list<string> Headers = ["ops/mma.h"];
  list<Takes> Values = [];
}

def ScalarFamily : MmaFamily<MmaScalar> {
  let Collective = 0;
  let KeepsResults = 0;
  let Abt = "scores_abt<kWarpRows>";
  let AddAbt = "";
  let Ab = "";
  let AddAb = "output_ab";
  let Atb = "";
  let AddAtb = "";
  let Headers = ["ops/scalar.h"];
  let Values = Complete<[Takes<"copy", ["cp_async", "ld_st"]>, Takes<"refill", ["joint", "split", "late"]>,
                         Takes<"swizzle", ["none", "xor", "pad"]>, Takes<"q_in", ["shared"]>,
                         Takes<"p_in", ["shared"]>, Takes<"split", ["1"]>]>.All;
}
def WmmaFamily : MmaFamily<MmaWmma> {
  let KeepsResults = 0;
  let Abt = "wmma_abt<kWarpRows>";
  let AddAbt = "";
  let Ab = "wmma_ab<kWarpRows>";
  let AddAb = "";
  let Atb = "";
  let AddAtb = "";
  let Headers = ["ops/wmma.h"];
  let Values = Complete<[Takes<"copy", ["cp_async", "ld_st"]>,
                         Takes<"swizzle", ["pad", "none"], "which needs a constant stride from row to row">,
                         Takes<"q_in", ["shared", "registers"]>, Takes<"p_in", ["shared"]>,
                         Takes<"reduce", ["warp"]>, Takes<"split", ["1"]>]>.All;
}
def MmaSyncFamily : MmaFamily<MmaMmaSync> {
  let WidensRight = 1;
  let Values = Complete<[Takes<"copy", ["cp_async", "ld_st", "tma"]>, Takes<"swizzle", ["xor", "none", "pad", "b128"]>,
                         Takes<"q_in", ["shared", "registers"]>, Takes<"p_in", ["registers"]>,
                         Takes<"reduce", ["warp"]>]>.All;
}
def WgmmaFamily : MmaFamily<MmaWgmma> {
  let Asynchronous = 1;
  let UnitWarps = 4;
  let Abt = "issue_abt";
  let AddAbt = "issue_add_abt";
  let Ab = "issue_first_ab";
  let AddAb = "issue_ab";
  let Atb = "issue_atb";
  let AddAtb = "issue_add_atb";
  let Async = "wgmma";
  let Headers = ["ops/mma.h", "ops/wgmma.h"];
  let Values = [Takes<"copy", ["tma"]>, Takes<"swizzle", ["b128"]>, Takes<"q_in", ["shared"]>,
                Takes<"p_in", ["registers"]>, Takes<"reduce", ["warp"]>];
}

// One instruction, or one template of instructions where N varies (NMax > N).
class MmaInstr<Case family, Case operand, Case accum, int m, int n, int k> {
  Case Family = family;
  Case Operand = operand; // type of A and B
  Case Accum = accum;     // type of C and D
  int M = m;
  int N = n;
  int K = k;
  int NMax = n;
  string Mnemonic = "";   // PTX; empty for arithmetic that is no matrix instruction
  string PtxSection = ""; // of the PTX ISA
  list<Feature> Needs = [];
  bit Implemented = 0;

  // Where operands lie, and how. A tile in shared memory is read along what is summed over (its columns are, of the left
  // operand of a b, or of both of a b^T), or with HasMajors across it, too; in registers it runs along. B is in shared
  // memory. K elements are 32 bytes of each operand where the instruction is one of matrices.
  bit HasMajors = 1;
  bit LeftInRegisters = 1;
  bit LeftInShared = 1;
  bit LeftMayBeSums = 0; // the left operand may have the sums' type, as products leave them

  // What a kernel built from it needs of its tile.
  int SlabRows = m;       // query rows that one warp, or one group of warps, takes at least
  int SlabWarps = 1;      // warps that work on a slab together
  int KeyMultiple = 1;    // keys of one warp's share of a tile
  int HeadDimMultiple = 1;

  // Fragments, in 32-bit registers of one thread.
  int ARegisters = 0;
  int BRegisters = 0;
  int DRegisters = 0;
}

class Scalar<Case operand> : MmaInstr<MmaScalar, operand, F32, 1, 1, 1> {
  let LeftInRegisters = 0;
  let LeftMayBeSums = 1;
  let KeyMultiple = 32; // a lane takes every 32nd key
  let HeadDimMultiple = 8;
  let Implemented = 1;
}

def ScalarF16 : Scalar<F16>;
def ScalarBF16 : Scalar<BF16>;

// mma.sync m16n8k16, row.col. With group g = lane / 4 and t = lane % 4 a thread holds, two 16-bit values a register:
//   A  a0: row g, columns 2t, 2t+1   a1: row g+8   a2: row g, columns 2t+8, 2t+9   a3: row g+8, columns 2t+8, 2t+9
//   B  b0: column g, rows 2t, 2t+1   b1: column g, rows 2t+8, 2t+9
//   D  d0, d1: row g, columns 2t, 2t+1   d2, d3: row g+8          (f32: one value a register)
class MmaM16N8K16<Case operand, Case accum> : MmaInstr<MmaMmaSync, operand, accum, 16, 8, 16> {
  let Mnemonic = "mma.sync.aligned.m16n8k16.row.col." # accum.Text # "." # operand.Text # "." # operand.Text # "." # accum.Text;
  let PtxSection = "Warp-level matrix instructions: mma, matrix fragments for mma.m16n8k16 with floating point type";
  let Needs = [MmaSync];
  let KeyMultiple = 16;
  let HeadDimMultiple = 16;
  let ARegisters = 4;
  let BRegisters = 2;
}

let Implemented = 1, DRegisters = 4 in {
  def MmaM16N8K16F32F16 : MmaM16N8K16<F16, F32>;
  def MmaM16N8K16F32BF16 : MmaM16N8K16<BF16, F32>;
}
let Implemented = 1, DRegisters = 2 in def MmaM16N8K16F16F16 : MmaM16N8K16<F16, F16>; // two values a register

// wmma m16n16k16: which lane holds which element is not specified, so S, P and P V cross shared memory. The mnemonic is
// that of a column-major B; with a row-major B it reads .row.row. A and B of f16 are held twice by the warp.
class Wmma16<Case operand, Case accum, string types> : MmaInstr<MmaWmma, operand, accum, 16, 16, 16> {
  let Mnemonic = "wmma.mma.sync.aligned.row.col.m16n16k16." # types;
  let PtxSection = "Warp-level matrix instructions: wmma.load, wmma.mma, wmma.store, fragments for .m16n16k16";
  let Needs = [MmaSync];
  let KeyMultiple = 32; // a lane takes every 32nd key of the softmax
  let HeadDimMultiple = 16;
  let ARegisters = 8;
  let BRegisters = 8;
  let Implemented = 1;
}

let DRegisters = 8 in {
  def WmmaF32F16 : Wmma16<F16, F32, "f32.f32">;
  let ARegisters = 4, BRegisters = 4 in def WmmaF32BF16 : Wmma16<BF16, F32, "f32.bf16.bf16.f32">;
}
let DRegisters = 4 in def WmmaF16F16 : Wmma16<F16, F16, "f16.f16">;

// wgmma m64nNk16 of 16-bit operands and m64nNk32 of bytes, N = 8, 16, ..., 256: four warps take 64 rows; warp w of the
// group holds rows 16w to 16w + 15 in the fragments of mma.m16n8k16, where each 16 bits of A may be two bytes. A comes
// from registers or shared memory, B from shared memory by descriptor.
class WgmmaM64<Case operand, Case accum, int k> : MmaInstr<MmaWgmma, operand, accum, 64, 8, k> {
  let NMax = 256;
  let Mnemonic = "wgmma.mma_async.sync.aligned.m64nNk" # k # "." # accum.Text # "." # operand.Text # "." # operand.Text;
  let PtxSection = "Asynchronous warpgroup-level matrix instructions: wgmma.mma_async";
  let Needs = [Wgmma];
  let SlabWarps = 4;
  let KeyMultiple = 16;
  let HeadDimMultiple = 32; // whole panels of the bulk copy engine: 64 columns, or 32 where those do not divide
  let ARegisters = 4;
}
class WgmmaM64K16<Case operand, Case accum> : WgmmaM64<operand, accum, 16>;
class WgmmaM64K32<Case operand> : WgmmaM64<operand, F32, 32> {
  let HasMajors = 0;
  let Needs = [Wgmma, Fp8];
  let KeyMultiple = 32;
}

let Implemented = 1, DRegisters = 4 in { // for N = 8; N / 8 times as many in general
  def WgmmaF32F16 : WgmmaM64K16<F16, F32>;
  def WgmmaF32BF16 : WgmmaM64K16<BF16, F32>;
}
let DRegisters = 2 in def WgmmaF16F16 : WgmmaM64K16<F16, F16>;
let Implemented = 1, DRegisters = 4 in def WgmmaF32E4M3 : WgmmaM64K32<E4M3>;

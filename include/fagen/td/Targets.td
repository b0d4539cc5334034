// fagen: the GPUs that text can be generated for, and the rates of those that times are predicted for.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Figures are those of the CUDA C++ Programming Guide's table of technical specifications per compute capability.
// A new GPU is one record here, a Policy where it has one of its own, and a test. Blackwell's sm_100 takes its place at the
// end: features are a list, so tcgen05 and cluster launch control become two more of them.

include "fagen/td/Features.td"

// Registers of a thread of a CTA with so many warp groups that compute: what the group that loads gives up goes to them.
// In all no more than an SM has, in units of 8; a group may only take more than it begins with (PTX ISA, setmaxnreg).
class RoleRegisters<int load, int math> {
  int Load = load;
  int Math = math;
}

// What may be done with shared memory that is left where CTAs take tile after tile.
class Arrangement<string enumerator, string doc> {
  string Enumerator = enumerator;
  string Doc = doc;
}
def TwoQueries : Arrangement<"TwoQueries",
    "a second slot of Q: the next one comes while this one is used, and results leave through the slot that was read">;
def HalfOfResults : Arrangement<"HalfOfResults", "half of O has a place through which it leaves">;

// What passes choose by, where the hardware leaves a choice. The numbers are from times on an H200; targets that were not
// timed have them, too.
class Policy {
  int LoadWarps = 4; // a warp group: registers are handed over by groups
  list<RoleRegisters> Registers = [RoleRegisters<24, 256>, RoleRegisters<24, 240>, RoleRegisters<32, 160>];
  int JudgeRegisters = 40; // of a thread that loads and judges tiles, too

  // Order of tiles. K and V of the heads that take turns are to stay in L2, with something left for Q and O; from
  // MostTurnRows rows on more of them save nothing. Where rows of K and V are long, those of all heads that are worked
  // on fill L2: fewer of them take turns then, and of sequences of LongTurnTiles tiles all do, so many at a time.
  int CachedMiB = 32;
  int MostTurnRows = 65536;
  int LongRowBytes = 1024;
  int LongTurnTiles = 32;

  list<Arrangement> Arrangements = [TwoQueries, HalfOfResults]; // the first that fits
  int HalfOfSmKiB = 48; // of shared memory; with no more than this, two CTAs fit an SM
}
def Timed : Policy;

class Target<string name, int sm, list<Feature> features> {
  string Name = name; // as the spec writes it, and as nvcc's -arch takes it
  int Sm = sm;        // compute capability, 10 * major + minor
  list<Feature> Features = features;
  Policy ThePolicy = Timed;

  // The text of a target runs on GPUs from FirstSm to LastSm (0: no end), because it uses only what all of them have.
  // Exact targets are architecture-specific: one compute capability, machine code only, no PTX for newer GPUs.
  int FirstSm = sm;
  int LastSm = 0;
  bit Exact = 0;

  int SharedPerBlock = ?; // bytes one CTA can have after opting in
  int SharedPerSm = ?;    // bytes all CTAs of an SM share
  int SharedReserved = 1024; // bytes that the system takes of each CTA's share
  int RegistersPerSm = 65536;
  int MaxRegistersPerThread = 255;
  int MaxWarpsPerSm = ?;
  int MaxBlocksPerSm = ?;
}

// The family of sm_80: sm_86 and sm_89 differ from it in sizes, not in the instructions that generated text uses.
class Ampere<string name, int sm, list<Feature> more = []> : Target<name, sm, !listconcat([CpAsync, MmaSync], more)> {
  let FirstSm = 80;
}

def SM80 : Ampere<"sm_80", 80> {
  let SharedPerBlock = 166912;
  let SharedPerSm = 167936;
  let MaxWarpsPerSm = 64;
  let MaxBlocksPerSm = 32;
}

def SM86 : Ampere<"sm_86", 86> {
  let SharedPerBlock = 101376;
  let SharedPerSm = 102400;
  let MaxWarpsPerSm = 48;
  let MaxBlocksPerSm = 16;
}

def SM89 : Ampere<"sm_89", 89, [Fp8]> {
  let SharedPerBlock = 101376;
  let SharedPerSm = 102400;
  let MaxWarpsPerSm = 48;
  let MaxBlocksPerSm = 24;
}

class Hopper<string name, list<Feature> more = []>
    : Target<name, 90, !listconcat([CpAsync, MmaSync, Fp8, Tma, StMatrix], more)> {
  let SharedPerBlock = 232448;
  let SharedPerSm = 233472;
  let MaxWarpsPerSm = 64;
  let MaxBlocksPerSm = 32;
}

def SM90 : Hopper<"sm_90">;

def SM90a : Hopper<"sm_90a", [Wgmma, SetMaxNReg]> {
  let LastSm = 90;
  let Exact = 1;
}

// GeForce and workstation boards: the copy engine of sm_90 and the products of sm_80. Text of sm_120 runs on sm_121, too.
def SM120 : Target<"sm_120", 120, [CpAsync, MmaSync, Fp8, Tma, StMatrix]> {
  let SharedPerBlock = 101376;
  let SharedPerSm = 102400;
  let MaxWarpsPerSm = 48;
  let MaxBlocksPerSm = 24;
}

//===-- Rates ----------------------------------------------------------------------------------------------------===//

// A GPU that stands for its compute capability where times are predicted (docs/internals/Model.md) and rooflines drawn. An SM's
// figures are per clock; several GPUs of one capability: the first stands for it. The vendor's data sheets (dense
// 16-bit peaks over SMs and boost clock, memory) and the CUDA C++ Programming Guide (arithmetic throughput, simplified)
// say all but what is marked.
class Gpu<string name, int sm> {
  string Name = name;
  int Sm = sm;
  int Sms = ?;
  int ClockMhz = ?;
  int TensorFlops = ?;            // by the fastest instruction: 16-bit operands, sums in f32
  int MmaSyncFlops = TensorFlops; // by mma.sync, sums in f32
  int MmaSyncF16Flops = MmaSyncFlops; // by mma.sync, sums in f16
  int Exps = 16;                  // special functions
  int Fp32 = 128;
  int HalfRate = 64;              // maxima, conversions
  int SharedBytes = 128;
  int DramGBs = ?;
  // Of the copy engine, where there is one.
  int BulkBytes = 0;   // an SM gets from the L2
  int BulkLatency = 0; // clocks from asking for a tile to its first bytes

  // How well the time model ranks measured variants of this GPU, without a mask and with a causal one: the least of
  // Spearman's correlations at a shape in percent, and how many variants. test/Scripts/model-correlation.test finds it.
  int UnmaskedRank = 0;
  int UnmaskedVariants = 0;
  int CausalRank = 0;
  int CausalVariants = 0;
}

def A100 : Gpu<"A100", 80> {
  let Sms = 108;
  let ClockMhz = 1410;
  let TensorFlops = 2048;
  let Fp32 = 64;
  let DramGBs = 1555;
}

def A10 : Gpu<"A10", 86> {
  let Sms = 72;
  let ClockMhz = 1695;
  let TensorFlops = 1024;
  let DramGBs = 600;
}

// GeForce boards: half the rate with sums in f32.
def RTX3090 : Gpu<"RTX 3090", 86> {
  let Sms = 82;
  let ClockMhz = 1695;
  let TensorFlops = 512;
  let MmaSyncF16Flops = 1024;
  let DramGBs = 936;
}

def L4 : Gpu<"L4", 89> {
  let Sms = 58;
  let ClockMhz = 2040;
  let TensorFlops = 1024;
  let DramGBs = 300;
}

def RTX4090 : Gpu<"RTX 4090", 89> {
  let Sms = 128;
  let ClockMhz = 2520;
  let TensorFlops = 512;
  let MmaSyncF16Flops = 1024;
  let DramGBs = 1008;
}

def H200 : Gpu<"H200", 90> {
  let Sms = 132;
  let ClockMhz = 1980;     // seen during measurements
  let TensorFlops = 4096;  // wgmma
  let MmaSyncFlops = 2729; // measured: two thirds of wgmma
  let DramGBs = 4630;      // a measured streaming read
  let BulkBytes = 64;      // as is the latency, from what tuners timed: docs/internals/Model.md
  let BulkLatency = 800;
  let UnmaskedRank = 88;   // evidence/h200/model
  let UnmaskedVariants = 200;
  let CausalRank = 60;
  let CausalVariants = 72;
}

// No GPU of this kind was there: the copy engine's figures are those of an H200.
def RTX5090 : Gpu<"RTX 5090", 120> {
  let Sms = 170;
  let ClockMhz = 2407;
  let TensorFlops = 512;
  let MmaSyncF16Flops = 1024;
  let DramGBs = 1792;
  let BulkBytes = 64;
  let BulkLatency = 800;
}

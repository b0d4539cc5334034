// fagen: the GPUs that text can be generated for.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Figures are those of the CUDA C++ Programming Guide's table of technical specifications per compute capability.
// A new GPU is one record here, a policy file where it has a policy of its own, and a test. Blackwell (sm_100, sm_120)
// takes its place at the end: features are a list, so tcgen05 and cluster launch control become two more of them.

include "fagen/td/Features.td"

class Target<string name, int sm, list<Feature> features> {
  string Name = name; // as the spec writes it, and as nvcc's -arch takes it
  int Sm = sm;        // compute capability, 10 * major + minor
  list<Feature> Features = features;

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
    : Target<name, 90, !listconcat([CpAsync, MmaSync, Fp8, Tma], more)> {
  let SharedPerBlock = 232448;
  let SharedPerSm = 233472;
  let MaxWarpsPerSm = 64;
  let MaxBlocksPerSm = 32;
}

def SM90 : Hopper<"sm_90">;

def SM90a : Hopper<"sm_90a", [Wgmma]> {
  let LastSm = 90;
  let Exact = 1;
}

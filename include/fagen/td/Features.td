// fagen: what a GPU generation can do that spec values and instructions may need.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef FAGEN_TD_FEATURES
#define FAGEN_TD_FEATURES

class Feature<string text, string doc> {
  string Text = text; // as messages and docs write it
  string Doc = doc;
}

def CpAsync : Feature<"cp_async", "cp.async: copies from global to shared memory that run alongside the warp">;
def MmaSync : Feature<"mma_sync", "mma.sync m16n8k16 on f16 and bf16, ldmatrix">;
def Fp8 : Feature<"fp8", "mma on e4m3 operands">;
def Tma : Feature<"tma", "the bulk copy engine, mbarrier transaction counts, thread block clusters">;
def StMatrix : Feature<"stmatrix", "stmatrix: fragments to shared memory, a matrix at once">;
def Wgmma : Feature<"wgmma", "warp-group products that read shared memory">;
def SetMaxNReg : Feature<"setmaxnreg", "warp groups hand registers over to each other">;

#endif // FAGEN_TD_FEATURES

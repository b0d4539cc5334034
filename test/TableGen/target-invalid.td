// A target must run its own text, and an exact one nothing else.
// RUN: not fagen-tblgen -gen-targets -I %source/include -DOWN %s 2>&1 | FileCheck %s --check-prefix=OWN
// RUN: not fagen-tblgen -gen-targets -I %source/include -DEXACT %s 2>&1 | FileCheck %s --check-prefix=EXACT
include "fagen/td/Targets.td"

#ifdef OWN
// OWN: [[#@LINE+1]]:5: error: target 'sm_75' cannot run its own text
def SM75 : Target<"sm_75", 75, []> {
  let FirstSm = 80;
}
#endif
#ifdef EXACT
// EXACT: [[#@LINE+1]]:5: error: an exact target runs on its own compute capability alone
def SM100a : Target<"sm_100a", 100, []> {
  let Exact = 1;
}
#endif

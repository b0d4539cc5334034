// Passes: each name once, and each pass of the pipeline says why it stands where it stands.
// RUN: not fagen-tblgen -gen-pipeline -I %source/include -DTWICE %s 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not fagen-tblgen -gen-pipeline -I %source/include -DPLACE %s 2>&1 | FileCheck %s --check-prefix=PLACE
include "fagen/td/Passes.td"

#ifdef TWICE
// TWICE: [[#@LINE+1]]:5: error: pass 'hold-query' is declared twice
def HoldQueryAgain : Pass<"hold-query", "summary", "needs", "ensures"> { let Place = "Here."; }
#endif
#ifdef PLACE
// PLACE: [[#@LINE+1]]:5: error: Place of pass 'rest-a-while' is empty; it says why the pass stands where it stands
def RestAWhile : Pass<"rest-a-while", "summary", "needs", "ensures">;
#endif

// Rates of GPUs: defaults follow the figure before, and no rate is zero; what not every GPU has is.
// RUN: fagen-tblgen -gen-gpus -I %source/include %s | FileCheck %s
// RUN: not fagen-tblgen -gen-gpus -I %source/include -DZERO %s 2>&1 | FileCheck %s --check-prefix=ZERO
include "fagen/td/Targets.td"

// CHECK: {"Few", 75, 4, 1000, 512, 512, 512, 16, 128, 64, 128, 100, 0, 0, 0, 0, 0, 0},
def Few : Gpu<"Few", 75> {
  let Sms = 4;
  let ClockMhz = 1000;
  let TensorFlops = 512;
  let DramGBs = 100;
#ifdef ZERO
// ZERO: [[#@LINE-6]]:5: error: GPU 'Few' has no Exps
  let Exps = 0;
#endif
}

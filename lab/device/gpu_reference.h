// fagen: the reference on a GPU, for shapes that the CPU would take minutes for.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "gpu_device.h"
#include "gpu_module.h"
#include "lab/reference/reference.h"

namespace fagen::lab {

class GpuReference : public ReferenceEngine {
public:
  /// Compiles the reference kernels with NVRTC.
  explicit GpuReference(GpuDevice &device);
  Reference compute(const Case &c, const DenseInputs &inputs) override;

  /// Largest difference from the CPU's reference on a small case: |O| and |LSE| in f64, what tensor cores may lose of
  /// a row's LSE relative to the CPU's figure, and max |plain - ref| of each.
  struct Agreement {
    double o = 0, lse = 0, lseLoss = 0, plainGpu = 0, plainCpu = 0;
    bool holds() const; ///< the first three agree to 1e-12, and the plain errors to a factor of 2
  };
  Agreement compareWithCpu();
  /// The same; throws when it does not hold.
  Agreement requireAgreement();

private:
  GpuDevice &device;
  GpuModule module;
  CuFunction f64, loss, plain;
};

} // namespace fagen::lab

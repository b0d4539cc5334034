// fagen: the reference on a GPU, for shapes that the CPU would take minutes for.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "gpu_device.h"
#include "gpu_module.h"
#include "lab/reference/reference.h"

#include <map>
#include <optional>

namespace fagen::lab {

class GpuReference : public ReferenceEngine {
public:
  /// Compiles the reference kernels with NVRTC; those of forms once they are needed.
  explicit GpuReference(GpuDevice &device);
  /// Of a form's first case, compares a small one with the CPU's first; throws when they differ.
  Reference compute(const Case &c, const DenseInputs &inputs) override;

  /// How far the CPU's reference is from it on a small case: |O| and |LSE| in f64, what tensor cores may lose of a
  /// row's LSE and, of a form, what f32 may make of it, relative to the CPU's figures; and max |plain - ref| of each.
  /// With a form, O and LSE are relative to what they may be for its scores (see compare).
  struct Agreement {
    double o = 0, lse = 0, lseLoss = 0, plainGpu = 0, plainCpu = 0;
    double formErrors = 0;      ///< relative
    int64_t otherUndecided = 0; ///< rows that only one of them leaves out
    bool holds() const;
  };
  /// Of causal attention; throws when it does not hold.
  Agreement requireAgreement();
  /// Of the forms so far, by their texts.
  const std::map<std::string, Agreement> &agreementsOfForms() const { return ofForms; }

  static Agreement compare(const Reference &gpu, const Reference &cpu);

private:
  struct Memories;

  Reference computeHere(const Case &c, const DenseInputs &inputs);
  void compareForm(const Case &c);
  Agreement compareWithCpu(const Case &c);

  GpuDevice &device;
  GpuModule module;
  std::optional<GpuModule> ofFormsModule;
  std::map<std::string, Agreement> ofForms;
};

} // namespace fagen::lab

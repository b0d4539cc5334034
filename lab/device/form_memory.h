// fagen: the tensors of a case's form on a device, and its scalars that lie there.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "device.h"
#include "lab/cases/form_inputs.h"

namespace fagen::lab {

/// In place once constructed; nothing where the case has no form. Launches refer to it.
class FormOnDevice {
public:
  FormOnDevice(TestDevice &device, std::shared_ptr<const FormInputs> inputs);

  void addTo(fagen_tensors &tensors) const;
  void addTo(Launch &launch) const;
  /// Whether the tensors and what lies around them are as they were uploaded.
  void checkUnchanged(std::vector<Failure> &failures) const;

private:
  TestDevice &device;
  std::shared_ptr<const FormInputs> inputs;
  std::vector<std::unique_ptr<DeviceMemory>> memories; ///< of inputs->tensors
  std::vector<fagen_arg> args;
};

} // namespace fagen::lab

// fagen: the tensors of a case's form on a device.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "form_memory.h"

#include <fmt/format.h>

namespace fagen::lab {

FormOnDevice::FormOnDevice(TestDevice &device, std::shared_ptr<const FormInputs> given)
    : device(device), inputs(std::move(given)) {
  if (!inputs)
    return;
  for (const FormMemory &tensor : inputs->tensors) {
    const auto bytes = static_cast<int64_t>(tensor.image.size());
    memories.push_back(std::make_unique<DeviceMemory>(device, bytes));
    device.upload(memories.back()->address(), tensor.image.data(), bytes);
    fagen_arg &arg = args.emplace_back(fagen_arg{});
    arg.name = tensor.name.c_str();
    arg.data = memories.back()->address(tensor.baseBytes);
  }
}

void FormOnDevice::addTo(fagen_tensors &tensors) const {
  tensors.args = args.data();
  tensors.arg_count = static_cast<uint32_t>(args.size());
}

void FormOnDevice::addTo(Launch &launch) const {
  addTo(launch.tensors);
  for (size_t i = 0; i < memories.size(); ++i) {
    const FormMemory &tensor = inputs->tensors[i];
    launch.memory.push_back(
        {tensor.name, memories[i]->address(tensor.baseBytes), tensor.spanBytes, false, nullptr, &tensor});
  }
}

void FormOnDevice::checkUnchanged(std::vector<Failure> &failures) const {
  for (size_t i = 0; i < memories.size(); ++i) {
    const FormMemory &tensor = inputs->tensors[i];
    std::vector<unsigned char> now(tensor.image.size());
    device.download(now.data(), memories[i]->address(), static_cast<int64_t>(now.size()));
    if (now != tensor.image)
      failures.push_back({"input", fmt::format("the form's {}, or memory around it, was changed", tensor.name)});
  }
}

} // namespace fagen::lab

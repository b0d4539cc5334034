// fagen: the tensors of a case on a device: inputs in place, outputs poisoned, guards around all of them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "device.h"
#include "form_memory.h"
#include "lab/cases/abi_problem.h"
#include "lab/reference/reference.h"

#include <fmt/format.h>
#include <memory>

namespace fagen::lab {

/// A tensor's host image and its memory on the device.
template <typename Word> struct DeviceTensor {
  DeviceTensor(TestDevice &device, const Placement &place)
      : image(place), memory(device, image.allocationBytes()), device(device) {}

  void upload() {
    for (auto &window : image.windows())
      device.upload(memory.address(window.begin * sizeof(Word)), window.words.data(),
                    static_cast<int64_t>(window.words.size() * sizeof(Word)));
  }
  void download() {
    for (auto &window : image.windows())
      device.download(window.words.data(), memory.address(window.begin * sizeof(Word)),
                      static_cast<int64_t>(window.words.size() * sizeof(Word)));
  }
  void poison() {
    image.poison();
    upload();
  }
  void *base() const { return memory.address(image.baseBytes()); }
  MemoryView view(const char *name, bool writable) const {
    return {name, base(), image.placement().span() * static_cast<int64_t>(sizeof(Word)), writable, &image.placement()};
  }

  Image<Word> image;
  DeviceMemory memory;
  TestDevice &device;
};

/// K or V: of 16 bits, or where the case says so of bytes.
class KeyTensor {
public:
  KeyTensor(TestDevice &device, const Placement &place, const Case &c);
  void place(const std::vector<uint16_t> &dense);
  void checkInput(const char *name, const std::vector<uint16_t> &dense, std::vector<Failure> &failures);
  void *base() const;
  MemoryView view(const char *name) const;

private:
  const Case &testCase;
  std::unique_ptr<DeviceTensor<uint16_t>> words; ///< one of the two
  std::unique_ptr<DeviceTensor<uint8_t>> bytes;
};

/// The tensors of one case on the device; inputs are in place once constructed.
class CaseMemory {
public:
  CaseMemory(TestDevice &device, const Case &c, const DenseInputs &inputs);

  Launch launchOf(const KernelSet &set, const fagen_row &row, int attempt) const;
  /// Whether the inputs and the words around them are as they were uploaded.
  void checkInputs(const DenseInputs &inputs, std::vector<Failure> &failures);

  template <typename Word>
  static void checkGuards(const char *name, const DeviceTensor<Word> &collected, std::vector<Failure> &failures) {
    if (auto word = collected.image.firstForeignWord())
      failures.push_back(
          {"guard", fmt::format("{} was written outside its elements, at element offset {}", name, *word)});
  }

  const Case &testCase;
  Placements places;
  DeviceTensor<uint16_t> q;
  KeyTensor k, v;
  DeviceTensor<uint16_t> o;
  DeviceTensor<uint32_t> lse;
  FormOnDevice form;
};

/// Whether the row, asked for by name, takes the case; `failures` gets anything else than that it does not fit.
bool fitsRow(TestDevice &device, const KernelSet &set, const fagen_row &row, const fagen_problem &problem,
             std::vector<Failure> &failures);

} // namespace fagen::lab

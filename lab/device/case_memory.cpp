// fagen: the tensors of a case on a device.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "case_memory.h"

#include <algorithm>

namespace fagen::lab {

template <typename Word> static void placeWords(DeviceTensor<Word> &tensor, const std::vector<Word> &dense) {
  tensor.image.poison();
  tensor.image.scatter(dense);
  tensor.upload();
}

template <typename Word>
static void checkWords(const char *name, DeviceTensor<Word> &tensor, const std::vector<Word> &dense,
                       std::vector<Failure> &failures) {
  tensor.download();
  if (tensor.image.collect() != dense)
    failures.push_back({"input", fmt::format("{} was changed", name)});
  CaseMemory::checkGuards(name, tensor, failures);
}

KeyTensor::KeyTensor(TestDevice &device, const Placement &place, const Case &c) : testCase(c) {
  if (c.kv == KvDType::Same)
    words = std::make_unique<DeviceTensor<uint16_t>>(device, place);
  else
    bytes = std::make_unique<DeviceTensor<uint8_t>>(device, place);
}

void KeyTensor::place(const std::vector<uint16_t> &dense) {
  words ? placeWords(*words, dense) : placeWords(*bytes, bytesOf(testCase, dense));
}

void KeyTensor::checkInput(const char *name, const std::vector<uint16_t> &dense, std::vector<Failure> &failures) {
  words ? checkWords(name, *words, dense, failures) : checkWords(name, *bytes, bytesOf(testCase, dense), failures);
}

void *KeyTensor::base() const { return words ? words->base() : bytes->base(); }

MemoryView KeyTensor::view(const char *name) const {
  return words ? words->view(name, false) : bytes->view(name, false);
}

CaseMemory::CaseMemory(TestDevice &device, const Case &c, const DenseInputs &inputs)
    : testCase(c), places(c), q(device, places.q), k(device, places.k, c), v(device, places.v, c), o(device, places.o),
      lse(device, places.lse), form(device, c.arguments) {
  placeWords(q, inputs.q);
  k.place(inputs.k);
  v.place(inputs.v);
}

Launch CaseMemory::launchOf(const KernelSet &set, const fagen_row &row, int attempt) const {
  Launch launch;
  launch.set = &set;
  launch.row = &row;
  launch.attempt = attempt;
  launch.problem = describeProblem(testCase, places);
  launch.problem.variant = row.variant;
  // An absent K and V is legal when there is no key; the junk layout tries it.
  bool nullKv = testCase.layout == Layout::Junk && testCase.shape.seqKv == 0;
  launch.tensors.q = q.base();
  launch.tensors.k = nullKv ? nullptr : k.base();
  launch.tensors.v = nullKv ? nullptr : v.base();
  launch.tensors.o = o.base();
  launch.tensors.lse = testCase.lse ? static_cast<float *>(lse.base()) : nullptr;
  launch.memory = {q.view("Q", false), k.view("K"), v.view("V"), o.view("O", true)};
  if (testCase.lse)
    launch.memory.push_back(lse.view("LSE", true));
  form.addTo(launch);
  return launch;
}

void CaseMemory::checkInputs(const DenseInputs &inputs, std::vector<Failure> &failures) {
  checkWords("Q", q, inputs.q, failures);
  k.checkInput("K", inputs.k, failures);
  v.checkInput("V", inputs.v, failures);
  form.checkUnchanged(failures);
}

bool fitsRow(TestDevice &device, const KernelSet &set, const fagen_row &row, const fagen_problem &problem,
             std::vector<Failure> &failures) {
  fagen_problem named = problem;
  named.variant = row.variant;
  const fagen_table *table = set.table();
  fagen_choice choice = makeAbi<fagen_choice>();
  fagen_status status = fagen_query(&table, 1, &named, device.queryDevice(row), &choice);
  if (status == FAGEN_OK)
    return choice.row == &row; // else a row of the same name for a nearer target
  if (status != FAGEN_UNSUPPORTED && status != FAGEN_MISALIGNED)
    failures.push_back({"query", fmt::format("{}: {}", row.variant, fagen_last_error())});
  return false;
}

} // namespace fagen::lab

// fagen: the tensors of a case on a device.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "case_memory.h"

#include <algorithm>

namespace fagen::lab {

CaseMemory::CaseMemory(TestDevice &device, const Case &c, const DenseInputs &inputs)
    : testCase(c), places(c), q(device, places.q), k(device, places.k), v(device, places.v), o(device, places.o),
      lse(device, places.lse), form(device, c.arguments) {
  auto place = [](DeviceTensor<uint16_t> &tensor, const std::vector<uint16_t> &dense) {
    tensor.image.poison();
    tensor.image.scatter(dense);
    tensor.upload();
  };
  place(q, inputs.q);
  place(k, inputs.k);
  place(v, inputs.v);
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
  launch.memory = {q.view("Q", false), k.view("K", false), v.view("V", false), o.view("O", true)};
  if (testCase.lse)
    launch.memory.push_back(lse.view("LSE", true));
  form.addTo(launch);
  return launch;
}

void CaseMemory::checkInputs(const DenseInputs &inputs, std::vector<Failure> &failures) {
  auto check = [&](const char *name, DeviceTensor<uint16_t> &tensor, const std::vector<uint16_t> &dense) {
    tensor.download();
    if (tensor.image.collect() != dense)
      failures.push_back({"input", fmt::format("{} was changed", name)});
    checkGuards(name, tensor, failures);
  };
  check("Q", q, inputs.q);
  check("K", k, inputs.k);
  check("V", v, inputs.v);
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

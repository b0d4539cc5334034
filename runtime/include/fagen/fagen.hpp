// fagen: fagen.h for C++17: owning handles, and failures as exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   fagen::Device device(0);
//   fagen_problem problem = fagen_problem_init(); problem.dtype = FAGEN_DTYPE_F16; ...
//   fagen::Choice choice = device.query({&fagen_table_l4_fp16}, problem);
//   choice.prepare();
//   choice.run(tensors, stream);
#pragma once

#include <fagen/table.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace fagen {

/// A failed call: its status, and fagen_last_error() as text.
class Error : public std::runtime_error {
public:
  explicit Error(fagen_status status)
      : std::runtime_error(std::string(fagen_status_name(status)) + ": " + fagen_last_error()), code(status) {}
  fagen_status status() const noexcept { return code; }

private:
  fagen_status code;
};

/// Throws unless the status is OK.
inline void check(fagen_status status) {
  if (status != FAGEN_OK)
    throw Error(status);
}

/// The args of a problem's form, by the names of its params: args.number("window", 1024).number("cap", 50.0f). Names
/// are not copied. A problem or tensors that have them point into this object.
class Args {
public:
  Args &number(const char *name, std::int64_t value) { return add(name, FAGEN_ARG_I32, value, 0, nullptr, {}); }
  Args &number(const char *name, int value) { return number(name, std::int64_t(value)); }
  Args &number(const char *name, double value) { return add(name, FAGEN_ARG_F32, 0, value, nullptr, {}); }
  Args &number(const char *name, const std::int32_t *onDevice) { return add(name, FAGEN_ARG_I32, 0, 0, onDevice, {}); }
  Args &number(const char *name, const float *onDevice) { return add(name, FAGEN_ARG_F32, 0, 0, onDevice, {}); }
  /// Without strides it is packed.
  Args &tensor(const char *name, const void *data, std::initializer_list<std::int64_t> strides = {}) {
    return add(name, FAGEN_ARG_TENSOR, 0, 0, data, strides);
  }

  /// Names the form in place of a mask.
  void putInto(fagen_problem &problem, const char *form) const {
    problem.mask = 0;
    problem.form = form;
    problem.args = args.data();
    problem.arg_count = static_cast<std::uint32_t>(args.size());
  }
  void putInto(fagen_tensors &tensors) const {
    tensors.args = args.data();
    tensors.arg_count = static_cast<std::uint32_t>(args.size());
  }

private:
  Args &add(const char *name, std::uint32_t kind, std::int64_t i32, double f32, const void *data,
            std::initializer_list<std::int64_t> strides) {
    if (strides.size() > 4)
      throw std::invalid_argument("a tensor of a form has at most 4 strides");
    fagen_arg arg = {name, kind, 0, i32, f32, data, {}};
    std::size_t i = 0;
    for (std::int64_t stride : strides)
      arg.stride[i++] = stride;
    args.push_back(arg);
    return *this;
  }

  std::vector<fagen_arg> args;
};

/// What a program is called with: call.tensor("a", a, FAGEN_DTYPE_F16, {m, k}).result("c").number("window", 1024).
/// Names are not copied. The query fills results in; their addresses can be given then.
class Call {
public:
  explicit Call(const char *program) { made.program = program; }

  /// Without strides it is dense.
  Call &tensor(const char *name, void *data, std::uint32_t dtype, std::initializer_list<std::int64_t> extents,
               std::initializer_list<std::int64_t> strides = {}) {
    if (extents.size() > FAGEN_MAX_RANK || (strides.size() && strides.size() != extents.size()))
      throw std::invalid_argument("a program's tensor has at most 5 extents, and a stride for each or none");
    fagen_named_tensor tensor = {name, data, dtype, static_cast<std::uint32_t>(extents.size()), {}, {}};
    std::copy(extents.begin(), extents.end(), tensor.extent);
    std::copy(strides.begin(), strides.end(), tensor.stride);
    tensors.push_back(tensor);
    return *this;
  }
  /// A tensor whose type and extents the query shall tell.
  Call &result(const char *name) {
    tensors.push_back({name, nullptr, 0, 0, {}, {}});
    return *this;
  }
  Call &number(const char *name, std::int64_t value) {
    numbers.push_back({name, FAGEN_ARG_I32, 0, value, 0});
    return *this;
  }
  Call &number(const char *name, int value) { return number(name, std::int64_t(value)); }
  Call &number(const char *name, double value) {
    numbers.push_back({name, FAGEN_ARG_F32, 0, 0, value});
    return *this;
  }

  /// The tensor of this name.
  fagen_named_tensor &operator[](const std::string &name) {
    for (fagen_named_tensor &tensor : tensors)
      if (name == tensor.name)
        return tensor;
    throw std::out_of_range("the call has no tensor '" + name + "'");
  }

  /// Points into this object, until it changes.
  const fagen_call *get() {
    made.tensors = tensors.data();
    made.numbers = numbers.data();
    made.tensor_count = static_cast<std::uint32_t>(tensors.size());
    made.number_count = static_cast<std::uint32_t>(numbers.size());
    return &made;
  }

private:
  std::vector<fagen_named_tensor> tensors;
  std::vector<fagen_named_number> numbers;
  fagen_call made = fagen_call_init();
};

/// A kernel set read from the directory that fagen wrote. Must outlive the devices that its rows are prepared on.
class Table {
public:
  explicit Table(const std::string &path) { check(fagen_table_load(path.c_str(), &table)); }
  Table(Table &&other) noexcept : table(std::exchange(other.table, nullptr)) {}
  Table &operator=(Table &&other) noexcept {
    std::swap(table, other.table);
    return *this;
  }
  ~Table() { fagen_table_release(table); }

  const fagen_table *get() const { return table; }

private:
  const fagen_table *table = nullptr;
};

/// The row that fits a problem. Refers to its device, which must outlive it; may be copied.
class Choice {
public:
  Choice(const fagen_choice &choice, fagen_device *device) : choice(choice), device(device) {}

  void prepare() const { check(fagen_prepare(&choice, device)); }

  void run(const fagen_tensors &tensors, CUstream_st *stream = nullptr, void *workspace = nullptr,
           std::size_t workspaceBytes = 0) const {
    check(fagen_run(&choice, &tensors, workspace, workspaceBytes, stream));
  }

  /// Of a program.
  void run(Call &call, CUstream_st *stream = nullptr, void *workspace = nullptr, std::size_t workspaceBytes = 0) const {
    check(fagen_run_program(&choice, call.get(), workspace, workspaceBytes, stream));
  }

  /// Of the library, for one launch on the stream (fagen_lend_workspace); null where none is needed.
  void *lendWorkspace(CUstream_st *stream = nullptr) const {
    void *workspace = nullptr;
    check(fagen_lend_workspace(&choice, device, stream, &workspace));
    return workspace;
  }

  fagen_choice_info info() const {
    fagen_choice_info result = fagen_choice_info_init();
    check(fagen_choice_get_info(&choice, &result));
    return result;
  }

  std::size_t workspaceBytes() const { return choice.workspace_bytes; }
  std::size_t zeroBytes() const { return fagen_choice_zero_bytes(&choice); } ///< of them, in front
  const fagen_choice &get() const { return choice; }

private:
  fagen_choice choice;
  fagen_device *device;
};

/// A GPU, or the description of one. Unloads its kernels when it ends.
class Device {
public:
  /// By CUDA ordinal, in its primary context; FAGEN_CURRENT_CONTEXT: the thread's current one.
  explicit Device(int ordinal) { check(fagen_device_create(ordinal, &device)); }
  static Device describe(std::uint32_t computeCapability, std::uint32_t smCount) {
    Device result;
    check(fagen_device_describe(computeCapability, smCount, &result.device));
    return result;
  }
  Device(Device &&other) noexcept : device(std::exchange(other.device, nullptr)) {}
  Device &operator=(Device &&other) noexcept {
    std::swap(device, other.device);
    return *this;
  }
  ~Device() { fagen_device_destroy(device); }

  void makeCurrent() const { check(fagen_device_make_current(device)); }

  fagen_device_info info() const {
    fagen_device_info result = fagen_device_info_init();
    check(fagen_device_get_info(device, &result));
    return result;
  }

  Choice query(std::initializer_list<const fagen_table *> tables, const fagen_problem &problem) const {
    fagen_choice choice = fagen_choice_init();
    check(fagen_query(tables.begin(), tables.size(), &problem, device, &choice));
    return Choice(choice, device);
  }

  /// The row of a program; fills in the call's results.
  Choice query(std::initializer_list<const fagen_table *> tables, Call &call) const {
    fagen_choice choice = fagen_choice_init();
    check(fagen_query_program(tables.begin(), tables.size(), call.get(), device, &choice));
    return Choice(choice, device);
  }

  std::string explain(std::initializer_list<const fagen_table *> tables, const fagen_problem &problem) const {
    std::size_t size = fagen_explain(tables.begin(), tables.size(), &problem, device, nullptr, 0);
    std::vector<char> text(size + 1);
    fagen_explain(tables.begin(), tables.size(), &problem, device, text.data(), text.size());
    return std::string(text.data(), size);
  }

  fagen_device *get() const { return device; }

private:
  Device() = default;
  fagen_device *device = nullptr;
};

} // namespace fagen

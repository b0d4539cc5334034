// fagen: a device that computes right, or wrong in one chosen way.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lab/check/check.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace fagen::lab {

enum class Plant {
  None,
  Build,
  Nan,
  WrongElement,
  Unwritten,
  Guard,
  Gap,
  Lse,
  LseLoss, ///< one row's is off by 1e-5 and half of what tensor cores may lose there
  Nondeterminism,
  Input,
  Launch,
  Lost,
  Hang
};

/// Computes attention on the host from the strides it is told, and then does one thing wrong.
class FakeDevice : public TestDevice {
public:
  explicit FakeDevice(Plant plant = Plant::None) : plant(plant) { fagen_device_describe(89, 1, &described); }
  ~FakeDevice() override { fagen_device_destroy(described); }

  std::string name() const override { return "fake"; }
  fagen_device *queryDevice(const fagen_row &) override { return described; }
  int64_t largestTensor() const override { return int64_t{1} << 20; }
  void *allocate(int64_t bytes) override { return std::aligned_alloc(256, (bytes + 255) / 256 * 256); }
  void release(void *memory) override { std::free(memory); }
  void upload(void *to, const void *from, int64_t bytes) override { std::memcpy(to, from, bytes); }
  void download(void *to, const void *from, int64_t bytes) override { std::memcpy(to, from, bytes); }

  Built build(const Launch &) override {
    return {plant == Plant::Build ? "planted: a syntax error" : "", "fake", registers, localBytes};
  }
  std::vector<Failure> run(const Launch &launch) override {
    ++runs;
    if (plant == Plant::Launch)
      return {{"launch", "planted"}};
    if (plant == Plant::Lost)
      throw DeviceError("planted");
    compute(launch);
    corrupt(launch);
    return {};
  }

  /// Planted: a launch with more than 40 keys does not end.
  Sequence runAll(const std::vector<Launch> &launches, double patience) override {
    if (plant != Plant::Hang)
      return TestDevice::runAll(launches, patience);
    Sequence sequence;
    for (const Launch &launch : launches) {
      if (launch.problem.seq_kv > 40) {
        sequence.failures = {{"hang", "planted"}};
        sequence.hangs = true;
        return sequence;
      }
      ++sequence.ended;
    }
    return sequence;
  }

  int runs = 0;
  int otherAttempt = 2;                ///< of other bits, where that is planted
  int registers = -1, localBytes = -1; ///< what build() tells

private:
  static std::vector<uint16_t> gather(const void *base, const int64_t *stride, int64_t batch, int64_t heads,
                                      int64_t rows, int64_t columns) {
    std::vector<uint16_t> dense;
    for (int64_t i = 0; i < batch * heads * rows; ++i) {
      auto *row = static_cast<const uint16_t *>(base) + (batch > 1 ? i / rows / heads * stride[0] : 0) +
                  (heads > 1 ? i / rows % heads * stride[1] : 0) + (rows > 1 ? i % rows * stride[2] : 0);
      dense.insert(dense.end(), row, row + columns);
    }
    return dense;
  }

  void compute(const Launch &launch) {
    const fagen_problem &p = launch.problem;
    Case c;
    c.shape = {p.batch, p.heads, p.kv_heads, p.seq_q, p.seq_kv, p.head_dim_qk, p.head_dim_v};
    c.mask = Mask::Causal;
    if (p.has_scale)
      c.scale = p.scale;
    DenseInputs inputs{gather(launch.tensors.q, p.q_stride, p.batch, p.heads, p.seq_q, p.head_dim_qk),
                       gather(launch.tensors.k, p.k_stride, p.batch, p.kv_heads, p.seq_kv, p.head_dim_qk),
                       gather(launch.tensors.v, p.v_stride, p.batch, p.kv_heads, p.seq_kv, p.head_dim_v)};
    Reference reference = CpuReference().compute(c, inputs);
    if (plant == Plant::LseLoss)
      loseSome(reference);
    for (int64_t i = 0; i < c.shape.rows(); ++i) {
      int64_t row = i % p.seq_q, head = i / p.seq_q % p.heads, batch = i / p.seq_q / p.heads;
      int64_t offset = (p.batch > 1 ? batch * p.o_stride[0] : 0) + (p.heads > 1 ? head * p.o_stride[1] : 0) +
                       (p.seq_q > 1 ? row * p.o_stride[2] : 0);
      std::memcpy(static_cast<uint16_t *>(launch.tensors.o) + offset, &reference.plain[i * p.head_dim_v],
                  p.head_dim_v * 2);
      if (launch.tensors.lse)
        launch.tensors
            .lse[(p.batch > 1 ? batch * p.lse_stride[0] : 0) + (p.heads > 1 ? head * p.lse_stride[1] : 0) + row] =
            static_cast<float>(reference.lse[i]);
    }
  }

  /// Where the loss is largest next to the LSE, so that f32 shows it.
  static void loseSome(Reference &reference) {
    size_t chosen = 0;
    const auto share = [&](size_t i) { return reference.lseLoss[i] / std::max(1.0, std::abs(reference.lse[i])); };
    for (size_t i = 0; i < reference.lse.size(); ++i)
      chosen = share(i) > share(chosen) ? i : chosen;
    double &lse = reference.lse[chosen];
    lse += 1e-5 * std::max(1.0, std::abs(lse)) + reference.lseLoss[chosen] / 2;
  }

  void corrupt(const Launch &launch) {
    auto *o = static_cast<uint16_t *>(launch.tensors.o);
    switch (plant) {
    case Plant::WrongElement:
      o[5] = f16OfFloat(3);
      break;
    case Plant::Nan:
      o[5] = 0x7e00;
      break;
    case Plant::Unwritten:
      o[5] = kPoison16;
      break;
    case Plant::Guard:
      o[-1] = 0;
      break;
    case Plant::Gap:
      o[launch.problem.head_dim_v] = 0;
      break;
    case Plant::Lse:
      launch.tensors.lse[1] += 1;
      break;
    case Plant::Nondeterminism:
      o[5] = static_cast<uint16_t>(o[5] ^ (launch.attempt == otherAttempt));
      break;
    case Plant::Input:
      const_cast<uint16_t *>(static_cast<const uint16_t *>(launch.tensors.k))[3] = 0x1234;
      break;
    default:
      break;
    }
  }

  Plant plant;
  fagen_device *described = nullptr;
};

} // namespace fagen::lab

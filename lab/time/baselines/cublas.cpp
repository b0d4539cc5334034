// fagen: attention without fusion, and a plain product, by cuBLAS.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cublas.h"
#include "cublas_library.h"
#include "lab/device/gpu_module.h"
#include "lab/kernels/kernel_text.h"
#include "lab/time/timing_device.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace fagen::lab {

static constexpr int64_t kWorkspaceBytes = int64_t{32} << 20; ///< what cuBLAS recommends for Hopper
static constexpr int64_t kSideMultiple = 128;

int64_t gemmSide(const Shape &shape, Mask mask) {
  double side = std::cbrt(flops(shape, mask) / 2);
  return std::max<int64_t>(1, std::llround(side / kSideMultiple)) * kSideMultiple;
}

namespace {

/// A handle whose workspace is our own, as captured graphs need.
class Handle {
public:
  explicit Handle(GpuDevice &device) : workspace(device, kWorkspaceBytes) {
    std::string reason;
    library = cublas(reason);
    if (!library)
      throw CannotRun(reason);
    check(library->create(&handle), "cublasCreate");
    check(library->setStream(handle, device.gpu.stream()), "cublasSetStream"); // this resets the workspace
    check(library->setWorkspace(handle, workspace.address(), kWorkspaceBytes), "cublasSetWorkspace");
  }
  ~Handle() {
    if (handle)
      library->destroy(handle);
  }
  Handle(const Handle &) = delete;
  Handle &operator=(const Handle &) = delete;

  std::string version() const {
    int version = 0;
    check(library->getVersion(handle, &version), "cublasGetVersion");
    return fmt::format("cuBLAS {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  }

  /// Column-major C (m x n) = alpha op(A) B, batch by batch, dense matrices of one 16-bit type.
  struct Product {
    bool transposeA = false;
    int64_t m, n, k, batches = 1;
    float alpha = 1;
    const void *a, *b;
    void *c;
  };
  void multiply(const Product &p, DType dtype) {
    auto number = [](int64_t value) { return static_cast<int>(value); };
    int type = dtype == DType::F16 ? kCudaF16 : kCudaBf16;
    float beta = 0;
    check(library->gemmStridedBatched(handle, p.transposeA ? kCublasTransposed : kCublasNone, kCublasNone, number(p.m),
                                      number(p.n), number(p.k), &p.alpha, p.a, type, number(p.transposeA ? p.k : p.m),
                                      p.m * p.k, p.b, type, number(p.k), p.k * p.n, &beta, p.c, type, number(p.m),
                                      p.m * p.n, number(p.batches), kCublasComputeF32, kCublasDefaultAlgorithm),
          "cublasGemmStridedBatchedEx");
  }

private:
  void check(CublasStatus status, const char *call) const {
    if (status != 0)
      throw CannotRun(fmt::format("{}: {}", call, library->statusString(status)));
  }
  DeviceMemory workspace;
  const Cublas *library = nullptr;
  CublasHandle handle = nullptr;
};

/// kernels/softmax.cu, compiled for this GPU.
class Softmax {
public:
  Softmax(GpuDevice &device, DType dtype)
      : module(device.gpu, kSoftmaxText, "softmax.cu"),
        function(module.function(dtype == DType::F16 ? "softmaxRowsF16" : "softmaxRowsBf16")) {}

  void enqueue(const Case &c, void *scores, CuStream stream) {
    long long keys = c.shape.seqKv, queries = c.shape.seqQ;
    int causal = c.mask == Mask::Causal;
    auto threads = static_cast<unsigned>(std::clamp<int64_t>((keys / 8 + 31) / 32 * 32, 32, 256));
    void *arguments[] = {&scores, &keys, &queries, &causal};
    checkCuda(fagen::driver()->cuLaunchKernel(function, static_cast<unsigned>(c.shape.rows()), 1, 1, threads, 1, 1, 0,
                                              stream, arguments, nullptr),
              "launch the softmax kernel");
  }

private:
  GpuModule module;
  CuFunction function;
};

class UnfusedWork : public GpuWork {
public:
  explicit UnfusedWork(GpuTensors &tensors)
      : tensors(tensors), handle(tensors.device), softmax(tensors.device, tensors.problem.dtype),
        scores(tensors.device, bytes(tensors)) {
    library = handle.version();
  }

  static int64_t bytes(const GpuTensors &tensors) {
    return tensors.problem.shape.rows() * tensors.problem.shape.seqKv * 2;
  }

  /// Row-major matrices are column-major ones transposed: S^T = K Q^T, O^T = V^T P^T. The query heads of one K/V head
  /// lie one after the other, so they are one matrix with as many rows.
  void enqueue(CuStream stream) override {
    const Case &c = tensors.problem;
    const Shape &s = c.shape;
    int64_t rows = s.heads / s.kvHeads * s.seqQ, batches = s.batch * s.kvHeads;
    handle.multiply({true, s.seqKv, rows, s.headDimQK, batches, static_cast<float>(c.scaleValue()), tensors.k.address(),
                     tensors.q.address(), scores.address()},
                    c.dtype);
    softmax.enqueue(c, scores.address(), stream);
    handle.multiply(
        {false, s.headDimV, rows, s.seqKv, batches, 1, tensors.v.address(), scores.address(), tensors.o.address()},
        c.dtype);
  }

private:
  GpuTensors &tensors;
  Handle handle;
  Softmax softmax;
  DeviceMemory scores;
};

/// A plain product, of normal values.
class ProductWork : public GpuWork {
public:
  /// Column-major C (m x n) = op(A) B; the time of a launch counts `factor` times.
  ProductWork(GpuDevice &device, DType dtype, bool transposeA, int64_t m, int64_t n, int64_t k, double factor = 1)
      : transposeA(transposeA), m(m), n(n), k(k), dtype(dtype), factor(factor), handle(device), a(device, m * k * 2),
        b(device, k * n * 2), c(device, m * n * 2) {
    Case values; // Q and K of a problem of this size
    values.shape = {1, 1, 1, m, n, k, 1};
    values.dtype = dtype;
    DenseInputs inputs = makeInputs(values, 1);
    device.upload(a.address(), inputs.q.data(), m * k * 2);
    device.upload(b.address(), inputs.k.data(), k * n * 2);
    library = handle.version();
  }

  void enqueue(CuStream) override {
    handle.multiply({transposeA, m, n, k, 1, 1, a.address(), b.address(), c.address()}, dtype);
  }
  bool computesAttention() const override { return false; }
  double scale() const override { return factor; }

private:
  bool transposeA;
  int64_t m, n, k;
  DType dtype;
  double factor;
  Handle handle;
  DeviceMemory a, b, c;
};

class CublasBaseline : public Baseline {
public:
  std::string unavailable() const override {
    std::string reason;
    cublas(reason);
    return reason;
  }
};

class UnfusedBaseline : public CublasBaseline {
public:
  std::unique_ptr<GpuWork> prepare(GpuTensors &tensors) override {
    const Shape &s = tensors.problem.shape;
    if (s.seqKv % 8 || s.rows() == 0 || s.seqKv == 0)
      throw CannotRun(fmt::format("seq_kv {} is not a positive multiple of 8, or there are no rows", s.seqKv));
    int64_t wanted = UnfusedWork::bytes(tensors), free = tensors.device.gpu.freeBytes();
    if (wanted > free / 2)
      throw CannotRun(fmt::format("its scores take {} MiB; {} MiB are free", wanted >> 20, free >> 20));
    auto work = std::make_unique<UnfusedWork>(tensors);
    work->enqueue(tensors.device.gpu.stream()); // cuBLAS loads its kernels at the first call, which no capture allows
    return work;
  }
};

class GemmBaseline : public CublasBaseline {
public:
  std::unique_ptr<GpuWork> prepare(GpuTensors &tensors) override {
    const Case &c = tensors.problem;
    const int64_t side = gemmSide(c.shape, c.mask);
    auto work = std::make_unique<ProductWork>(tensors.device, c.dtype, false, side, side, side,
                                              flops(c.shape, c.mask) / (2.0 * side * side * side));
    work->enqueue(tensors.device.gpu.stream());
    return work;
  }
};

} // namespace

std::unique_ptr<Baseline> makeCublasUnfused() { return std::make_unique<UnfusedBaseline>(); }
std::unique_ptr<Baseline> makeCublasGemm() { return std::make_unique<GemmBaseline>(); }

/// A row-major matrix is a column-major one transposed: C^T = B A^T.
std::unique_ptr<GpuWork> makeCublasProduct(GpuDevice &device, DType dtype, int64_t m, int64_t n, int64_t k) {
  auto work = std::make_unique<ProductWork>(device, dtype, true, n, m, k);
  work->enqueue(device.gpu.stream());
  return work;
}

} // namespace fagen::lab

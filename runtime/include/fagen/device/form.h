// fagen: what a form's kernels take in addition to attention's parameters: numbers, and tensors that expressions read.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/params.h>
#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/math.h>

namespace fagen::device {

/// The argument of a form's kernels. The form's parameters are its scalars, then its tensors, in the form's order.
template <class Form> struct FormedParams {
  MappedAttentionParams attention;
  Form form;
};

/// 32 of them in a word, low first.
struct bit {};

/// A number of the host, or where `device` is not null the one that stands there when the kernel runs.
template <class T> struct Scalar {
  const T *device;
  T number;
};

// The loads are not under a branch: a compiler may move a load to before the branch, and out of a loop.

__device__ __forceinline__ float value_of(const Scalar<float> &scalar, ptx::Site site = ptx::Site::here()) {
  const bool is_there = scalar.device != nullptr;
  const float there = ptx::bits_float(ptx::ld_global_u32(scalar.device, site, is_there));
  return is_there ? there : scalar.number;
}

/// Held to what the form says that it may be: bounds of loops depend on it.
__device__ __forceinline__ int value_of(const Scalar<int> &scalar, int low, int high,
                                        ptx::Site site = ptx::Site::here()) {
  const bool is_there = scalar.device != nullptr;
  const int there = static_cast<int>(ptx::ld_global_u32(scalar.device, site, is_there));
  return !is_there ? scalar.number : there < low ? low : there > high ? high : there;
}

// 0 where the lane is not active.
__device__ __forceinline__ float load_element(const float *source, ptx::Site site, bool active = true) {
  return ptx::bits_float(ptx::ld_global_u32(source, site, active));
}
__device__ __forceinline__ int load_element(const int *source, ptx::Site site, bool active = true) {
  return static_cast<int>(ptx::ld_global_u32(source, site, active));
}
__device__ __forceinline__ int load_element(const unsigned char *source, ptx::Site site, bool active = true) {
  return ptx::ld_global_u8(source, site, active);
}
__device__ __forceinline__ float load_element(const f16 *source, ptx::Site site, bool active = true) {
  return ptx::to_float(f16{ptx::ld_global_u16(source, site, active)});
}
__device__ __forceinline__ float load_element(const bf16 *source, ptx::Site site, bool active = true) {
  return ptx::to_float(bf16{ptx::ld_global_u16(source, site, active)});
}

/// A tensor with the caller's strides, in elements; f32, f16 and bf16 are read as float, i32 and u8 as int.
template <class T, int kRank> struct Tensor {
  const T *data;
  long long stride[kRank];

  template <class... Indices> __device__ __forceinline__ auto operator()(Indices... indices) const {
    return load_element(place_of(indices...), ptx::Site::here());
  }
  /// 0 where that is `known`, as it is of a tensor without elements.
  template <class... Indices> __device__ __forceinline__ auto zero_if(bool known, Indices... indices) const {
    return load_element(place_of(indices...), ptx::Site::here(), !known);
  }
  /// The same of indices that are computed in a loop.
  __device__ __forceinline__ auto at(const int (&index)[kRank]) const {
    long long offset = 0;
#pragma unroll
    for (int dimension = 0; dimension < kRank; ++dimension)
      offset += static_cast<long long>(index[dimension]) * stride[dimension];
    return load_element(data + offset, ptx::Site::here());
  }

  template <class... Indices> __device__ __forceinline__ const T *place_of(Indices... indices) const {
    static_assert(sizeof...(Indices) == kRank, "an index for each dimension");
    long long offset = 0;
    int dimension = 0;
    ((offset += static_cast<long long>(indices) * stride[dimension++]), ...);
    return data + offset;
  }
};

/// The last index counts bits, which lie side by side; the other strides are in words. Read as 0 or 1.
template <int kRank> struct Tensor<bit, kRank> {
  const unsigned *data;
  long long stride[kRank];

  template <class... Indices> __device__ __forceinline__ int operator()(Indices... indices) const {
    return zero_if(false, indices...);
  }
  template <class... Indices> __device__ __forceinline__ int zero_if(bool known, Indices... indices) const {
    static_assert(sizeof...(Indices) == kRank, "an index for each dimension");
    const int all[kRank] = {indices...};
    return bit_of(all, !known);
  }
  __device__ __forceinline__ int at(const int (&index)[kRank]) const { return bit_of(index, true); }
  /// The word that has it.
  __device__ __forceinline__ const unsigned *word_at(const int (&index)[kRank]) const {
    long long word = index[kRank - 1] / 32;
#pragma unroll
    for (int dimension = 0; dimension < kRank - 1; ++dimension)
      word += index[dimension] * stride[dimension];
    return data + word;
  }

private:
  __device__ __forceinline__ int bit_of(const int (&index)[kRank], bool active) const {
    const unsigned bits = ptx::ld_global_u32(word_at(index), ptx::Site::here(), active);
    return static_cast<int>(bits >> (index[kRank - 1] & 31) & 1u);
  }
};

} // namespace fagen::device

// fagen: elements of a tensor for keys side by side, loaded together.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A mask with an element for each query and key is read by runs of keys: 16 bytes a load where the caller's tensor lies
// so, else element by element. What a row sees of a run is a word with a bit for each key.
#pragma once

#include <fagen/device/form.h>
#include <fagen/device/tile/integer.h>

namespace fagen::device {

/// Keys of a run.
constexpr int kRunKeys = 16;
constexpr unsigned kWholeRun = (1u << kRunKeys) - 1; ///< every key of a run

// What bits of an element mean.
__device__ __forceinline__ float element_of(unsigned bits, const float *) { return ptx::bits_float(bits); }
__device__ __forceinline__ int element_of(unsigned bits, const int *) { return static_cast<int>(bits); }
__device__ __forceinline__ int element_of(unsigned bits, const unsigned char *) {
  return static_cast<int>(bits & 255u);
}
__device__ __forceinline__ float element_of(unsigned bits, const f16 *) {
  return ptx::to_float(f16{static_cast<unsigned short>(bits)});
}
__device__ __forceinline__ float element_of(unsigned bits, const bf16 *) {
  return ptx::to_float(bf16{static_cast<unsigned short>(bits)});
}

/// A bit for each byte of the word, low first: whether it is not 0. A carry out of the byte's low seven bits says so,
/// or the eighth; a product brings the four together.
__device__ __forceinline__ unsigned bytes_not_zero(unsigned word) {
  const unsigned high = (((word & 0x7f7f7f7fu) + 0x7f7f7f7fu) | word) & 0x80808080u;
  return (high >> 7) * 0x10204080u >> 28;
}

/// Elements as they lie in memory.
template <class T> struct KeyRun {
  static constexpr int kBits = 8 * sizeof(T), kOfWord = 32 / kBits;
  unsigned words[kRunKeys / kOfWord];

  /// That of key i of the run, as a tensor reads it.
  __device__ __forceinline__ auto operator[](int i) const {
    return element_of(words[i / kOfWord] >> kBits * (i % kOfWord), static_cast<const T *>(nullptr));
  }
  /// A bit for each key: whether its byte is not 0.
  __device__ __forceinline__ unsigned not_zero() const {
    static_assert(kBits == 8, "of bytes");
    unsigned found = 0;
#pragma unroll
    for (int word = 0; word < kRunKeys / kOfWord; ++word)
      found |= bytes_not_zero(words[word]) << kOfWord * word;
    return found;
  }
};
template <> struct KeyRun<bit> {
  unsigned word; ///< with more after the run

  __device__ __forceinline__ int operator[](int i) const { return static_cast<int>(word >> i & 1u); }
  __device__ __forceinline__ unsigned not_zero() const { return word; }
};

/// An element's bits, the others 0.
template <class T> __device__ __forceinline__ unsigned load_bits(const T *source) {
  if constexpr (sizeof(T) == 1)
    return ptx::ld_global_u8(source);
  else if constexpr (sizeof(T) == 2)
    return ptx::ld_global_u16(source);
  else
    return ptx::ld_global_u32(source);
}

// How runs are read: each takes tensor(indices..., last(key)) for each key of the run from `key` on. From key to key
// `last` goes up by one, or not at all.

/// By 16 bytes a load, or of bits by two words.
struct ReadTogether {
  template <class T, int kRank, class Last, class... Indices>
  __device__ __forceinline__ KeyRun<T> operator()(const Tensor<T, kRank> &tensor, int key, Last last,
                                                  Indices... indices) const {
    constexpr int kOfLoad = 4 * KeyRun<T>::kOfWord;
    KeyRun<T> run;
    const T *const source = tensor.place_of(indices..., last(key));
#pragma unroll
    for (int load = 0; load < kRunKeys / kOfLoad; ++load) {
      unsigned words[4];
      ptx::ld_global(words, source + load * kOfLoad);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        run.words[4 * load + i] = words[i];
    }
    return run;
  }
  template <int kRank, class Last, class... Indices>
  __device__ __forceinline__ KeyRun<bit> operator()(const Tensor<bit, kRank> &tensor, int key, Last last,
                                                    Indices... indices) const {
    const int first = last(key);
    const unsigned low = ptx::ld_global_u32(tensor.word_at({indices..., first})),
                   high = ptx::ld_global_u32(tensor.word_at({indices..., first + kRunKeys - 1}));
    return {static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> (first & 31))};
  }
};

/// Element by element.
struct ReadApart {
  template <class T, int kRank, class Last, class... Indices>
  __device__ __forceinline__ KeyRun<T> operator()(const Tensor<T, kRank> &tensor, int key, Last last,
                                                  Indices... indices) const {
    constexpr int kOfWord = KeyRun<T>::kOfWord;
    KeyRun<T> run{};
#pragma unroll
    for (int i = 0; i < kRunKeys; ++i)
      run.words[i / kOfWord] |= load_bits(tensor.place_of(indices..., last(key + i)))
                                << KeyRun<T>::kBits * (i % kOfWord);
    return run;
  }
  template <int kRank, class Last, class... Indices>
  __device__ __forceinline__ KeyRun<bit> operator()(const Tensor<bit, kRank> &tensor, int key, Last last,
                                                    Indices... indices) const {
    KeyRun<bit> run{};
#pragma unroll
    for (int i = 0; i < kRunKeys; ++i)
      run.word |= static_cast<unsigned>(tensor(indices..., last(key + i))) << i;
    return run;
  }
};

template <class T> constexpr bool kIsBit = false;
template <> inline constexpr bool kIsBit<bit> = true;

/// Not at all: finds whether runs lie together.
struct AskTogether {
  bool &are_together;

  template <class T, int kRank, class Last, class... Indices>
  __device__ __forceinline__ KeyRun<T> operator()(const Tensor<T, kRank> &tensor, int key, Last last,
                                                  Indices... indices) const {
    const int first = last(key);
    are_together &= last(key + kRunKeys - 1) - first == kRunKeys - 1;
    if constexpr (!kIsBit<T>)
      are_together &= tensor.stride[kRank - 1] == 1 &&
                      reinterpret_cast<unsigned long long>(tensor.place_of(indices..., first)) % 16 == 0;
    return {};
  }
};

/// The first so many keys of a run: none where the number is negative, all where it is larger.
__device__ __forceinline__ unsigned first_keys(int count) { return (1u << min(max(count, 0), kRunKeys)) - 1; }

/// A bit for each key of the run from `key` on: whether sees(key, its place in the run).
template <class Sees> __device__ __forceinline__ unsigned seen_of_run(int key, Sees sees) {
  unsigned seen = 0;
#pragma unroll
  for (int i = 0; i < kRunKeys; ++i)
    seen |= static_cast<unsigned>(sees(key + i, i)) << i;
  return seen;
}

/// A row, and the first key of a run.
struct RunPlace {
  int row, key;
};

/// What rows see of the runs at place_of(0), place_of(1) and so on: seen_of(row, key, read), which takes elements by
/// read. All are asked for before one is looked at.
template <int kCount, class PlaceOf, class SeenOf>
__device__ __forceinline__ void see_runs(unsigned (&seen)[kCount], PlaceOf place_of, SeenOf seen_of) {
  bool are_together = true;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const RunPlace place = place_of(i);
    seen_of(place.row, place.key, AskTogether{are_together});
  }
  if (are_together) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const RunPlace place = place_of(i);
      seen[i] = seen_of(place.row, place.key, ReadTogether{}) & kWholeRun;
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const RunPlace place = place_of(i);
    seen[i] = seen_of(place.row, place.key, ReadApart{}) & kWholeRun;
  }
}

} // namespace fagen::device

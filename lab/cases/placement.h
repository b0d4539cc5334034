// fagen: how a tensor lies in memory, and its host image with poison wherever no element is.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "cases.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fagen::lab {

/// A tensor [batch, head, row, column] with strides in elements; columns are dense.
struct Placement {
  std::array<int64_t, 4> sizes{};
  std::array<int64_t, 3> strides{}; ///< batch, head, row, as the kernel is told; any value where the size is 1
  int64_t baseOffset = 0;           ///< elements from an aligned address to element (0, 0, 0, 0)

  int64_t elements() const { return sizes[0] * sizes[1] * sizes[2] * sizes[3]; }
  /// Whether a row lies where one before it does, by a stride of 0.
  bool isRepeated(int64_t batch, int64_t head, int64_t row) const {
    return (batch && !strides[0]) || (head && !strides[1]) || (row && !strides[2]);
  }
  int64_t offset(int64_t batch, int64_t head, int64_t row) const {
    return batch * strides[0] + head * strides[1] + row * strides[2];
  }
  /// Elements from the first to one past the last.
  int64_t span() const;
};

/// Q, K, V and O, in this order.
enum Tensor { kQ, kK, kV, kO };

/// Where `layout` puts a tensor. Junk strides turn with it, so that each dimension sees each value.
Placement placeTensor(Layout layout, const std::array<int64_t, 4> &sizes, Tensor which);
/// LSE as [batch, head, row, 1]: its rows are always dense.
Placement placeLse(Layout layout, const std::array<int64_t, 3> &sizes);

constexpr uint16_t kPoison16 = 0x7fa5; ///< a NaN of both formats that no conversion instruction makes
constexpr uint32_t kPoison32 = 0x7fa57fa5;
constexpr int64_t kGuardBytes = 4096; ///< before the first and after the last element

/// Of bytes 0x7f: NaN in each of their formats.
template <typename Word>
constexpr Word kPoison = sizeof(Word) == 1   ? Word(0x7f)
                         : sizeof(Word) == 2 ? Word(kPoison16)
                                             : Word(kPoison32);

/// The host's image of an allocation: guard, tensor, guard. Batches that lie gigabytes apart have a window each;
/// memory between windows has no image.
template <typename Word> class Image {
public:
  explicit Image(const Placement &placement);

  struct Window {
    int64_t begin; ///< in words from the start of the allocation
    std::vector<Word> words;
  };

  const Placement &placement() const { return place; }
  int64_t allocationBytes() const { return (2 * kGuard + place.baseOffset + place.span()) * sizeof(Word); }
  int64_t baseBytes() const { return base * static_cast<int64_t>(sizeof(Word)); }
  std::vector<Window> &windows() { return windowList; }

  void poison();
  /// Of rows that lie in one place the first counts.
  void scatter(const std::vector<Word> &dense);
  /// The elements in [batch, head, row, column] order; their places are poison afterwards.
  std::vector<Word> collect();
  /// After collect(): the first word that is not poison, as words from the base; nothing outside was written if none.
  std::optional<int64_t> firstForeignWord() const;

private:
  static constexpr int64_t kGuard = kGuardBytes / sizeof(Word);
  Word *rowAddress(int64_t batch, int64_t head, int64_t row);

  Placement place;
  int64_t base; ///< word index of element (0, 0, 0, 0) in the allocation
  std::vector<Window> windowList;
};

extern template class Image<uint8_t>;
extern template class Image<uint16_t>;
extern template class Image<uint32_t>;

} // namespace fagen::lab

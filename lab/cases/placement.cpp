// fagen: strides of each layout; scatter to and collect from strided memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "placement.h"
#include "lab/support/parallel.h"

#include <algorithm>
#include <cstring>

namespace fagen::lab {

static constexpr int64_t kFarBatchStride = (int64_t{1} << 31) + 4096;
static constexpr std::array<int64_t, 3> kJunkStrides = {0, 3331333, 99990001};

int64_t Placement::span() const {
  if (elements() == 0)
    return 0;
  int64_t last = sizes[3] - 1;
  for (int i = 0; i < 3; ++i)
    if (sizes[i] > 1)
      last += (sizes[i] - 1) * strides[i];
  return last + 1;
}

Placement placeTensor(Layout layout, const std::array<int64_t, 4> &sizes, Tensor which) {
  auto [batch, heads, rows, columns] = sizes;
  Placement place{sizes, {heads * rows * columns, rows * columns, columns}, 0};
  switch (layout) {
  case Layout::Bhsd:
    break;
  case Layout::Bshd:
    place.strides = {rows * heads * columns, columns, heads * columns};
    break;
  case Layout::Padded: {
    int64_t head = rows * (columns + 8) + 64;
    place.strides = {heads * head + 128, head, columns + 8};
    break;
  }
  case Layout::Odd: {
    int64_t head = rows * (columns + 1) + 1;
    place.strides = {heads * head + 3, head, columns + 1};
    break;
  }
  case Layout::Offset:
    place.baseOffset = 1;
    break;
  case Layout::Junk:
    for (int i = 0; i < 3; ++i)
      if (sizes[i] == 1)
        place.strides[i] = kJunkStrides[(i + which) % 3];
    break;
  case Layout::Shared:
    if (which == kQ || which == kK)
      place.strides[0] = 0;
    if (which == kK || which == kV)
      place.strides[1] = 0;
    break;
  case Layout::OneRow:
    if (which == kK || which == kV)
      place.strides[2] = 0;
    break;
  case Layout::Far:
    place.strides[0] = kFarBatchStride;
    break;
  }
  return place;
}

Placement placeLse(Layout layout, const std::array<int64_t, 3> &sizes) {
  auto [batch, heads, rows] = sizes;
  Placement place{{batch, heads, rows, 1}, {heads * rows, rows, 1}, 0};
  if (layout == Layout::Padded || layout == Layout::Odd)
    place.strides = {heads * (rows + 3) + 5, rows + 3, 1};
  if (layout == Layout::Far)
    place.strides[0] = kFarBatchStride;
  if (layout == Layout::Junk)
    for (int i = 0; i < 2; ++i)
      if (sizes[i] == 1)
        place.strides[i] = kJunkStrides[i + 1];
  return place;
}

template <typename Word> Image<Word>::Image(const Placement &placement) : place(placement) {
  base = kGuard + place.baseOffset;
  int64_t total = 2 * kGuard + place.baseOffset + place.span();
  int64_t slab = place.span();
  bool apart = place.elements() > 0 && place.sizes[0] > 1 && place.strides[0] >= kFarBatchStride;
  if (apart)
    slab -= (place.sizes[0] - 1) * place.strides[0];
  for (int64_t batch = 0; batch < (apart ? place.sizes[0] : 1); ++batch) {
    int64_t begin = apart ? batch * place.strides[0] : 0;
    int64_t size = apart ? place.baseOffset + slab + 2 * kGuard : total;
    windowList.push_back({begin, std::vector<Word>(size, kPoison<Word>)});
  }
}

template <typename Word> void Image<Word>::poison() {
  for (Window &window : windowList)
    std::fill(window.words.begin(), window.words.end(), kPoison<Word>);
}

template <typename Word> Word *Image<Word>::rowAddress(int64_t batch, int64_t head, int64_t row) {
  Window &window = windowList[windowList.size() > 1 ? batch : 0];
  return window.words.data() + (base + place.offset(batch, head, row) - window.begin);
}

template <typename Word> void Image<Word>::scatter(const std::vector<Word> &dense) {
  int64_t heads = place.sizes[1], rows = place.sizes[2], columns = place.sizes[3];
  parallelFor(place.sizes[0] * heads * rows, 4096, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      if (!place.isRepeated(i / rows / heads, i / rows % heads, i % rows))
        std::memcpy(rowAddress(i / rows / heads, i / rows % heads, i % rows), dense.data() + i * columns,
                    columns * sizeof(Word));
  });
}

template <typename Word> std::vector<Word> Image<Word>::collect() {
  int64_t heads = place.sizes[1], rows = place.sizes[2], columns = place.sizes[3];
  std::vector<Word> dense(place.elements());
  const auto forRows = [&](auto visit) {
    parallelFor(place.sizes[0] * heads * rows, 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        visit(i, i / rows / heads, i / rows % heads, i % rows);
    });
  };
  forRows([&](int64_t i, int64_t batch, int64_t head, int64_t row) {
    std::memcpy(dense.data() + i * columns, rowAddress(batch, head, row), columns * sizeof(Word));
  });
  forRows([&](int64_t, int64_t batch, int64_t head, int64_t row) {
    if (!place.isRepeated(batch, head, row))
      std::fill_n(rowAddress(batch, head, row), columns, kPoison<Word>);
  });
  return dense;
}

template <typename Word> std::optional<int64_t> Image<Word>::firstForeignWord() const {
  for (const Window &window : windowList) {
    auto foreign = std::find_if(window.words.begin(), window.words.end(), [](Word w) { return w != kPoison<Word>; });
    if (foreign != window.words.end())
      return window.begin + (foreign - window.words.begin()) - base;
  }
  return std::nullopt;
}

template class Image<uint8_t>;
template class Image<uint16_t>;
template class Image<uint32_t>;

} // namespace fagen::lab

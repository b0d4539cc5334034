// fagen: an attention problem as people write it: shape, element type, mask.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lab/kernels/numeric.h"
#include "lab/support/user_error.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fagen::lab {

enum class Mask : int { None = 0, Causal = 1 };

/// Elements of K and V, where they are not those of Q and O.
enum class KvDType : int { Same, E4M3, E5M2 };

std::string_view nameOf(DType dtype);
std::string_view nameOf(KvDType dtype);
std::string_view nameOf(Mask mask);
DType parseDType(std::string_view text);
KvDType parseKvDType(std::string_view text);
Mask parseMask(std::string_view text);

struct Shape {
  int64_t batch = 1, heads = 1, kvHeads = 1, seqQ = 0, seqKv = 0, headDimQK = 0, headDimV = 0;
  bool operator==(const Shape &) const = default;

  int64_t qElements() const { return batch * heads * seqQ * headDimQK; }
  int64_t kElements() const { return batch * kvHeads * seqKv * headDimQK; }
  int64_t vElements() const { return batch * kvHeads * seqKv * headDimV; }
  int64_t oElements() const { return batch * heads * seqQ * headDimV; }
  int64_t rows() const { return batch * heads * seqQ; }
};

/// `b,h,hkv,sq,sk,d[,dv]`, or a name: mission (B 1, H 8, S 512, d 64) and mission2 (B 2).
Shape parseShape(std::string_view text);
std::string formatShape(const Shape &shape);
std::vector<std::string> shapeNames();

/// The performance grid: B * S = 16384 and H * d = 2048 for each d and S, in that order.
std::vector<Shape> gridShapes(const std::vector<int64_t> &headDims, const std::vector<int64_t> &lengths);

/// First key a causal query row does not see: keys j with j <= row + seqKv - seqQ are seen.
inline int64_t visibleKeys(const Shape &shape, Mask mask, int64_t row) {
  if (mask == Mask::None)
    return shape.seqKv;
  int64_t end = row + shape.seqKv - shape.seqQ + 1;
  return end < 0 ? 0 : end > shape.seqKv ? shape.seqKv : end;
}

/// 2 B H Sq Sk (d_qk + d_v), halved for causal: the field's convention, not a count of instructions.
double flops(const Shape &shape, Mask mask);

/// The candidate that differs from `word` by the fewest edits, when that is at most a third of it; else empty.
std::string nearest(std::string_view word, const std::vector<std::string> &candidates);

std::vector<std::string> split(std::string_view text, char separator);
int64_t parseInteger(std::string_view text, std::string_view what);

} // namespace fagen::lab

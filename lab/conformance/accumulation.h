// fagen: how a matrix instruction adds its products and the accumulator: exactly, and as tensor cores do.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor cores multiply exactly, shift all terms of a step to the largest exponent, cut what falls below a few bits,
// add, and round the sum (Fasi et al., PeerJ CS 2021; Khattak and Mikaitis, arXiv:2512.07004; Xie et al.,
// arXiv:2511.10909). How many terms a step has and how many bits it keeps differs by architecture; nobody documents it,
// so the study finds it from results.
#pragma once

#include "conformance.h"
#include "lab/kernels/numeric.h"

namespace fagen::lab {

/// What A and B are made of.
enum class Factor : uint8_t { F16, BF16, E4M3 };
inline Factor factorOf(DType dtype) { return dtype == DType::F16 ? Factor::F16 : Factor::BF16; }
/// Products of one instruction.
constexpr size_t depthOf(Factor factor) { return factor == Factor::E4M3 ? 32 : 16; }

/// One element of D = A B + C.
struct Dot {
  Factor factor = Factor::F16;
  bool half = false;                 ///< the accumulator is f16
  std::array<uint16_t, 32> a{}, b{}; ///< the first depthOf(factor) count
  uint32_t c = 0;                    ///< bits of the accumulator's type
};

/// One way to add.
struct Accumulation {
  int products = 16;    ///< of a step; the next step's accumulator is this one's result
  int fraction = 25;    ///< bits kept below the largest exponent
  bool truncate = true; ///< the result towards zero, else to nearest even
  bool joined = true;   ///< the accumulator is a term among the products, else added to their rounded sum
  bool zeros = false;   ///< a product that is zero takes part in the largest exponent
  int result = 23;      ///< bits of an f32 result's fraction that are kept
  bool ideal = false;   ///< none of the above: in f64 from the first product to the last, rounded once: the emulator's

  /// "16 products, 25 bits, truncated"
  std::string name() const;
};

/// Everything that the study tries, the published ones first.
const std::vector<Accumulation> &accumulations();
/// Those that may be a device's way to add such factors: as many products a step as the instruction has, or fewer.
bool isWayFor(Factor factor, const Accumulation &way);
/// Hopper's way to add products of e4m3.
Accumulation byteAccumulation();
/// The one of that name; null when there is none.
const Accumulation *findAccumulation(const std::string &name);

/// The result, in bits of the accumulator's type.
uint32_t accumulate(const Accumulation &way, const Dot &dot);

/// How far a result is from the exact sum, in parts of the bound that docs/internals/Arithmetic.md states.
Deviation judgeDot(const Dot &dot, uint32_t got);

/// Gathers results and compares them with every way.
class ModelStudy {
public:
  explicit ModelStudy(std::string name);
  void add(const ConformanceCase &testCase, const WordList &in, const WordList &out);
  ModelReport report() const;

private:
  std::vector<Accumulation> ways;
  ModelReport counts; ///< a candidate for each
};

} // namespace fagen::lab

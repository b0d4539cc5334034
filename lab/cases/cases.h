// fagen: a check case: a problem, the values in its inputs and how its tensors lie in memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "problem.h"

#include <map>
#include <memory>
#include <optional>

namespace fagen::lab {

enum class Inputs {
  Normal,   ///< standard normal Q, K, V
  Large,    ///< Q times 30: scaled scores reach about +-120
  Negative, ///< every scaled score near -120: a padded key scored 0 would take the whole row
  Constant, ///< all scores of a row equal: the average of the visible V rows
  Rising,   ///< scaled scores from -150 to 150 along the keys, in every other row the other way
  Leaps,    ///< in rows of every other warp group scaled scores leap by 40 or 110 somewhere along the keys
};

enum class Layout {
  Bhsd,   ///< [batch, head, row, column], dense
  Bshd,   ///< [batch, row, head, column], dense
  Padded, ///< bhsd with 8 extra elements a row, 64 a head and 128 a batch
  Odd,    ///< bhsd with 1 extra element a row: no 4-byte access is aligned on every row
  Offset, ///< bhsd, every base pointer 2 bytes past an aligned one
  Junk,   ///< bhsd; dimensions of size 1 have strides of 0, 3331333 or 99990001
  Shared, ///< bhsd with strides of 0: one Q for all batches, one K for all batches and heads, one V for all heads
  OneRow, ///< bhsd with row strides of 0 for K and V: all keys are one
  Far,    ///< bhsd with batches 2^31 + 4096 elements apart: offsets that 32 bits do not hold
};

/// Where the numbers of a form's scalars are when its kernel starts.
enum class Scalars {
  Host,   ///< in the launch's parameters
  Device, ///< in memory of the device, as captured launches need them
};

struct FormInputs;

struct Case {
  Shape shape;
  DType dtype = DType::F16;
  KvDType kv = KvDType::Same;
  KvDType kvValues = KvDType::Same; ///< K and V of 16 bits hold values of such bytes
  bool halfAccum = false; ///< of a kernel whose products accumulate in f16: it is judged by what those explain
  Mask mask = Mask::None;
  Inputs inputs = Inputs::Normal;
  Layout layout = Layout::Bhsd;
  std::optional<double> scale;           ///< 1 / sqrt(headDimQK) when absent
  bool lse = true;                       ///< false: the LSE pointer is NULL
  std::string form;                      ///< its text without blanks, in a mask's place: "gemma2", "local(window=128)"
  std::map<std::string, double> numbers; ///< of the form's scalars those that are not drawn
  std::map<std::string, std::string> tensors; ///< of its tensors those that are not drawn: rules (tensor_rule.h)
  Scalars scalars = Scalars::Host;
  std::shared_ptr<const FormInputs> arguments; ///< of the form, once withForm() has made them (form_inputs.h)

  double scaleValue() const;
  bool operator==(const Case &) const = default;
};

/// `b,h,hkv,sq,sk,d[,dv] [dtype=f16] [kv=same] [kv_values=same] [accum=f32] [mask=none] [inputs=normal] [layout=bhsd] [scale=X]
/// [lse=off] [form=TEXT] [arg.NAME=X] [arg.NAME=RULE] [scalars=host]`; what equals the default is left out.
/// parseCase(formatCase(c)) == c, but for what withForm() made.
std::string formatCase(const Case &c);
Case parseCase(std::string_view text);
/// Of "window=1024".
std::pair<std::string, double> parseNumber(std::string_view text);
/// What says which keys are seen: "none", "causal", or the form's text.
std::string maskText(const Case &c);

} // namespace fagen::lab

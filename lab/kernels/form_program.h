// fagen: forms at one element, by interpreting their programs; host code and the reference kernels share this text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Freestanding: NVRTC compiles it after form_value.h.
#pragma once

#ifndef __CUDACC_RTC__
#include "form_value.h"
#endif

namespace fagen::lab {

/// What a form may name without declaring it: s b h hk q k p, batch heads kv_heads seq_q seq_kv.
enum class FormPlace : unsigned short {
  Score,
  Batch,
  Head,
  KvHead,
  Query,
  Key,
  QueryPlace,
  Batches,
  Heads,
  KvHeads,
  SeqQ,
  SeqKv
};
inline constexpr int kFormPlaces = 12;

struct FormElement {
  double score = 0; ///< scale * q . k
  long long batch = 0, head = 0, query = 0, key = 0;
};

/// One instruction of a program, its names resolved.
struct FormWord {
  enum Kind : unsigned char { Number, Place, Let, Read, Operator } kind = Number;
  bool isReal = false;         ///< what it gives is f32; of an operator, what it takes is
  bool isOfKey = false;        ///< what it gives depends on the key
  unsigned short index = 0;    ///< of a place, a let, a tensor, an operator
  unsigned short operands = 0; ///< that it takes from the stack
  double number = 0;
};

inline constexpr int kMostExtents = 4;

/// Dense, the last index fastest.
struct FormTensorView {
  const double *values;
  long long extents[kMostExtents];
  int rank;
};

/// Words that leave one value; none where there is no program.
struct FormCode {
  int begin = 0, size = 0;
};

/// A program of a form; as bits, for what a let is needed.
enum FormPart : unsigned { kOfScore = 1, kOfMask = 2, kOfSink = 4, kOfVScale = 8 };

struct FormLet {
  FormCode code;
  unsigned needs; ///< of FormPart
};

/// The programs of a form with the numbers and tensors of one problem.
struct FormView {
  const FormWord *words;
  const FormLet *lets;
  const FormTensorView *tensors;
  int letCount;
  FormCode score, mask, sink, vScale;
  long long batches, heads, kvHeads, seqQ, seqKv;
};

/// Indices outside are taken as the nearest inside; an empty tensor reads as 0.
inline double readTensor(const FormTensorView &tensor, const double *indices) {
  long long at = 0;
  for (int i = 0; i < tensor.rank; ++i) {
    const long long extent = tensor.extents[i], index = integerOf(indices[i]);
    if (extent == 0)
      return 0;
    at = at * extent + (index < 0 ? 0 : index >= extent ? extent - 1 : index);
  }
  return tensor.values[at];
}

inline FormValue readTensor(const FormTensorView &tensor, const FormValue *indices) {
  double exact[kMostExtents] = {};
  bool known = true;
  for (int i = 0; i < tensor.rank; ++i) {
    exact[i] = indices[i].value;
    known = known && indices[i].rounding == 0;
  }
  return {readTensor(tensor, exact), known ? 0 : undecided()};
}

inline double applyWord(const FormWord &word, const double *operands) {
  const double value = applyFormOperator(FormOperator(word.index), operands);
  return word.isReal && isSum(FormOperator(word.index)) ? roundedSum(value) : value;
}

/// A kernel has integers that grow along the keys in f32 once for a thread, and adds the keys' offsets to that.
inline constexpr double kOffsetsOfThread = 256;

inline FormValue applyWord(const FormWord &word, const FormValue *operands) {
  FormValue value = applyFormOperator(FormOperator(word.index), word.isReal, operands);
  if (FormOperator(word.index) != FormOperator::ToF32 || word.isReal)
    return value;
  value.follows = true;
  if (word.isOfKey)
    value.rounding += kFormRounding * kOffsetsOfThread;
  return value;
}

inline void setNumber(const FormWord &word, double &value) { value = word.number; }
/// A literal that f32 does not hold is rounded; params are given in f32.
inline void setNumber(const FormWord &word, FormValue &value) {
  const bool isExact = !word.isReal || asF32(word.number) == word.number || isInfinite(word.number);
  value = {word.number, isExact ? 0 : kFormRounding * fabs(word.number)};
}

/// The programs at one element after the other, as numbers or as values with errors. `lets` has room for the form's,
/// `stack` for the longest program's values.
template <class Value> class FormRun {
public:
  FormRun(const FormView &form, Value *lets, Value *stack) : form(form), lets(lets), stack(stack) {}

  Value score(const FormElement &element, const Value &score) {
    return form.score.size == 0 ? score : run(form.score, kOfScore, element, score);
  }
  Value mask(const FormElement &element) {
    return form.mask.size == 0 ? Value{1} : run(form.mask, kOfMask, element, Value{0});
  }
  /// Only where there is a sink; the element's key says nothing.
  Value sink(const FormElement &element) { return run(form.sink, kOfSink, element, Value{0}); }
  /// The element's query and key say nothing.
  Value vScale(const FormElement &element) {
    return form.vScale.size == 0 ? Value{1} : run(form.vScale, kOfVScale, element, Value{0});
  }

private:
  void setPlaces(const FormElement &element) {
    const long long group = form.kvHeads == 0 ? 1 : form.heads / form.kvHeads;
    const long long numbers[] = {0,
                                 element.batch,
                                 element.head,
                                 element.head / (group == 0 ? 1 : group),
                                 element.query,
                                 element.key,
                                 element.query + form.seqKv - form.seqQ,
                                 form.batches,
                                 form.heads,
                                 form.kvHeads,
                                 form.seqQ,
                                 form.seqKv};
    for (int i = 0; i < kFormPlaces; ++i)
      places[i] = static_cast<double>(numbers[i]);
  }

  __attribute__((noinline)) Value run(const FormCode &code, unsigned part, const FormElement &element,
                                      const Value &score) {
    setPlaces(element);
    for (int i = 0; i < form.letCount; ++i)
      if ((form.lets[i].needs & part) != 0)
        lets[i] = evaluate(form.lets[i].code, score);
    return evaluate(code, score);
  }

  __attribute__((noinline)) Value evaluate(const FormCode &code, const Value &score) {
    Value *top = stack; // one past the last
    for (const FormWord *word = form.words + code.begin, *end = word + code.size; word != end; ++word) {
      top -= word->operands;
      switch (word->kind) {
      case FormWord::Place:
        *top = FormPlace(word->index) == FormPlace::Score ? score : Value{places[word->index]};
        break;
      case FormWord::Let:
        *top = lets[word->index];
        break;
      case FormWord::Read:
        *top = readTensor(form.tensors[word->index], top);
        break;
      case FormWord::Operator:
        *top = applyWord(*word, top);
        break;
      case FormWord::Number:
        setNumber(*word, *top);
      }
      ++top;
    }
    return *(top - 1);
  }

  const FormView &form;
  Value *lets, *stack;
  double places[kFormPlaces] = {};
};

/// Given how far the element's own score may be off by rounding in f32. Of a form that leaves scores as they are this
/// is nothing of the form's.
inline FormValue scoreWithError(FormRun<FormValue> &run, const FormView &form, const FormElement &element,
                                double scoreRounding) {
  return run.score(element, {element.score, form.score.size == 0 ? 0 : scoreRounding, 0, 1});
}

} // namespace fagen::lab

// fagen: a call of a program: names to tensors and numbers, sizes from extents.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bind.h"

#include "../error.h"
#include "../problem.h"
#include "../words.h"
#include "solve.h"
#include "suggest.h"
#include "tensors.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>

namespace fagen {
namespace {

/// The entry of this name in a list of `count` that `nameOf` names, looked for at `guess` first; count: there is none.
template <typename NameOf> uint32_t indexOf(uint32_t count, uint32_t guess, const char *name, NameOf nameOf) {
  if (guess < count && strcmp(nameOf(guess), name) == 0)
    return guess;
  uint32_t i = 0;
  while (i < count && strcmp(nameOf(i), name) != 0)
    ++i;
  return i;
}

class Binder {
public:
  Binder(const fagen_row &row, const fagen_call &call, bool mayFill, BoundCall &bound)
      : program(row.variant), recipe(*row.recipe), call(call), mayFill(mayFill), bound(bound) {
    bound.program = program;
    bound.recipe = &recipe;
  }

  fagen_status bind() {
    fagen_status status = checkLists();
    status = status ? status : readNumbers();
    status = status ? status : readTensors();
    status = status ? status : solveSizes();
    status = status ? status : requireNumbers();
    for (uint32_t i = 0; i < recipe.tensor_count && !status; ++i)
      status = shapeTensor(i);
    return status ? status : layWorkspace();
  }

private:
  fagen_status checkLists() const {
    constexpr uint32_t kFlags = FAGEN_FLAG_PDL | FAGEN_FLAG_EXPLICIT;
    if ((call.tensor_count && !call.tensors) || (call.number_count && !call.numbers))
      return fail(FAGEN_INVALID, "%s: %s is NULL and its count is %u", program,
                  call.tensor_count && !call.tensors ? "tensors" : "numbers",
                  call.tensor_count && !call.tensors ? call.tensor_count : call.number_count);
    if (call.flags & ~kFlags || call.reserved)
      return fail(FAGEN_INVALID, "%s: fagen_call.%s is %u; of a program it takes %s", program,
                  call.reserved ? "reserved" : "flags", call.reserved ? call.reserved : call.flags,
                  call.reserved ? "0" : "FAGEN_FLAG_PDL and FAGEN_FLAG_EXPLICIT");
    return FAGEN_OK;
  }

  //===-- Numbers ------------------------------------------------------------------------------------------------===//

  /// Where a number comes from: of no tensor, given as one.
  struct Source {
    bool isKnown = false;
    const char *tensor = nullptr;
    uint32_t dimension = 0;
  };

  fagen_status readNumbers() {
    for (uint32_t i = 0; i < call.number_count; ++i) {
      const fagen_named_number &given = call.numbers[i];
      if (!given.name)
        return fail(FAGEN_INVALID, "%s: numbers[%u].name is NULL", program, i);
      const uint32_t index =
          indexOf(recipe.number_count, i, given.name, [&](uint32_t n) { return numberAt(recipe, n).name; });
      if (index == recipe.number_count)
        return failUnknown("number", given.name, recipe.number_count,
                           [&](uint32_t n) { return numberAt(recipe, n).name; });
      if (sources[index].isKnown)
        return fail(FAGEN_INVALID, "%s: number '%s' is given twice", program, given.name);
      if (fagen_status status = readNumber(index, given))
        return status;
    }
    return FAGEN_OK;
  }

  fagen_status readNumber(uint32_t index, const fagen_named_number &given) {
    const fagen_recipe_number &number = numberAt(recipe, index);
    const bool isReal = number.kind == FAGEN_ARG_F32;
    if (given.kind != number.kind || given.reserved)
      return fail(FAGEN_INVALID, "%s: %s of number '%s' is %u; it is %s", program, given.reserved ? "reserved" : "kind",
                  number.name, given.reserved ? given.reserved : given.kind,
                  given.reserved ? "0"
                  : isReal       ? "FAGEN_ARG_F32 (2)"
                                 : "FAGEN_ARG_I32 (1)");
    const double value = isReal ? given.f32 : double(given.i32);
    if (!(value >= number.low && value <= number.high) || (isReal && !(std::abs(value) <= double(FLT_MAX))))
      return failRange(number, value);
    sources[index] = {true, nullptr, 0};
    (isReal ? void(bound.reals[index] = float(value)) : void(bound.values[FAGEN_VAR_NUMBER_0 + index] = given.i32));
    return FAGEN_OK;
  }

  [[gnu::cold]] fagen_status failRange(const fagen_recipe_number &number, double value) const {
    char buffer[192];
    Text text(buffer, sizeof(buffer));
    addNumber(text, value);
    text.add("; it must be ");
    if (std::isfinite(number.low)) {
      addNumber(text, number.low);
      text.add(" to ");
      addNumber(text, number.high);
    } else {
      text.add("finite");
    }
    return fail(FAGEN_INVALID, "%s: number '%s' is %s", program, number.name, buffer);
  }

  fagen_status requireNumbers() const {
    for (uint32_t i = 0; i < recipe.number_count; ++i)
      if (!sources[i].isKnown)
        return fail(FAGEN_INVALID, "%s: number '%s' is missing: it follows from no tensor's extent; give it by name",
                    program, numberAt(recipe, i).name);
    return FAGEN_OK;
  }

  //===-- Tensors ------------------------------------------------------------------------------------------------===//

  fagen_status readTensors() {
    for (uint32_t i = 0; i < call.tensor_count; ++i) {
      fagen_named_tensor &given = call.tensors[i];
      if (!given.name)
        return fail(FAGEN_INVALID, "%s: tensors[%u].name is NULL", program, i);
      auto nameOf = [&](uint32_t n) { return tensorAt(recipe, n).name; };
      const uint32_t index = indexOf(recipe.tensor_count, i, given.name, nameOf);
      if (index == recipe.tensor_count || isInWorkspace(tensorAt(recipe, index)))
        return failUnknown("tensor", given.name, recipe.tensor_count, nameOf);
      if (bound.tensors[index].given)
        return fail(FAGEN_INVALID, "%s: tensor '%s' is given twice", program, given.name);
      bound.tensors[index].given = &given;
      if (fagen_status status = given.rank ? readSizes(index, given) : FAGEN_OK)
        return status;
    }
    for (uint32_t i = 0; i < recipe.tensor_count; ++i)
      if (const fagen_recipe_tensor &tensor = tensorAt(recipe, i); !bound.tensors[i].given && !isInWorkspace(tensor))
        return fail(FAGEN_INVALID, "%s: tensor '%s' is missing; it is %s", program, tensor.name, tensor.text);
    return FAGEN_OK;
  }

  /// Type and rank; and the sizes that are extents of it.
  fagen_status readSizes(uint32_t index, const fagen_named_tensor &given) {
    const fagen_recipe_tensor &tensor = tensorAt(recipe, index);
    const ElementFacts facts = factsOf(tensor.element);
    if (given.dtype != facts.dtype)
      return fail(FAGEN_INVALID, "%s: tensor '%s' has elements of %s (dtype %u); it is %s", program, tensor.name,
                  nameOfDtype(given.dtype), given.dtype, tensor.text);
    if (given.rank != tensor.rank)
      return fail(FAGEN_INVALID, "%s: tensor '%s' has %u dimension%s; it is %s", program, tensor.name, given.rank,
                  given.rank == 1 ? "" : "s", tensor.text);
    for (uint32_t d = 0; d < tensor.rank; ++d) {
      if (given.extent[d] < 0 || given.extent[d] > kMaxCount)
        return fail(FAGEN_INVALID, "%s: extent %u of tensor '%s' is %lld; it is 0 to %lld", program, d, tensor.name,
                    (long long)given.extent[d], (long long)kMaxCount);
      const fagen_expression &extent = tensor.extents[d];
      if (extent.size == 1 && extent.ops[0].kind == FAGEN_OP_VARIABLE && extent.ops[0].value >= FAGEN_VAR_NUMBER_0)
        if (fagen_status status =
                learn(uint32_t(extent.ops[0].value - FAGEN_VAR_NUMBER_0), given.extent[d], tensor.name, d))
          return status;
    }
    return FAGEN_OK;
  }

  /// Sizes that stand in an extent with others, until nothing more follows. What disagrees is found when tensors are
  /// shaped.
  fagen_status solveSizes() {
    for (bool goesOn = hasUnknown(); goesOn;) {
      goesOn = false;
      for (uint32_t i = 0; i < recipe.tensor_count; ++i) {
        const fagen_named_tensor *const given = bound.tensors[i].given;
        for (uint32_t d = 0; given && d < given->rank; ++d) {
          const auto told = solve(tensorAt(recipe, i).extents[d], given->extent[d]);
          if (!told)
            continue;
          if (fagen_status status = learn(told->number, told->value, tensorAt(recipe, i).name, d))
            return status;
          goesOn = true;
        }
      }
    }
    return FAGEN_OK;
  }

  bool hasUnknown() const {
    return std::any_of(sources, sources + recipe.number_count, [](const Source &source) { return !source.isKnown; });
  }

  std::optional<Told> solve(const fagen_expression &extent, int64_t value) const {
    bool isKnown[FAGEN_MAX_NUMBERS];
    for (uint32_t i = 0; i < recipe.number_count; ++i)
      isKnown[i] = sources[i].isKnown;
    return solveExtent(extent, value, bound.values, {isKnown, recipe.number_count});
  }

  fagen_status learn(uint32_t index, int64_t value, const char *tensor, uint32_t dimension) {
    Source &source = sources[index];
    int64_t &known = bound.values[FAGEN_VAR_NUMBER_0 + index];
    const fagen_recipe_number &number = numberAt(recipe, index);
    if (!source.isKnown) {
      if (!(double(value) >= number.low && double(value) <= number.high))
        return failRange(number, double(value));
      source = {true, tensor, dimension};
      known = value;
      return FAGEN_OK;
    }
    if (known == value)
      return FAGEN_OK;
    if (!source.tensor)
      return fail(FAGEN_INVALID, "%s: '%s' is given as %lld, and is %lld by extent %u of tensor '%s'", program,
                  number.name, (long long)known, (long long)value, dimension, tensor);
    return fail(FAGEN_INVALID, "%s: '%s' is %lld by extent %u of tensor '%s', and %lld by extent %u of tensor '%s'",
                program, number.name, (long long)known, source.dimension, source.tensor, (long long)value, dimension,
                tensor);
  }

  /// Extents by the numbers, which the given ones must equal; strides.
  fagen_status shapeTensor(uint32_t index) {
    const fagen_recipe_tensor &tensor = tensorAt(recipe, index);
    BoundTensor &shaped = bound.tensors[index];
    const fagen_named_tensor *const given = shaped.given && shaped.given->rank ? shaped.given : nullptr;
    if (shaped.given && !given && !mayFill)
      return fail(FAGEN_INVALID, "%s: tensor '%s' has no extents (rank is 0); fagen_query_program fills them in",
                  program, tensor.name);
    for (uint32_t d = 0; d < tensor.rank; ++d) {
      const std::optional<int64_t> extent = valueOf(bound, tensor.extents[d]);
      if (!extent || *extent < 0 || *extent > kMaxCount)
        return fail(FAGEN_INVALID, "%s: extent %u of tensor '%s' would be %lld; it is 0 to %lld: %s", program, d,
                    tensor.name, (long long)extent.value_or(-1), (long long)kMaxCount, tensor.text);
      if (given && given->extent[d] != *extent)
        return fail(FAGEN_INVALID, "%s: extent %u of tensor '%s' is %lld; by the sizes it is %lld: %s", program, d,
                    tensor.name, (long long)given->extent[d], (long long)*extent, tensor.text);
      shaped.extent[d] = *extent;
    }
    if (fagen_status status = setStrides(program, tensor, given, call.flags & FAGEN_FLAG_EXPLICIT, shaped))
      return status;
    if (shaped.given && !given)
      fillIn(tensor, shaped);
    return FAGEN_OK;
  }

  static void fillIn(const fagen_recipe_tensor &tensor, const BoundTensor &shaped) {
    fagen_named_tensor &asked = *shaped.given;
    asked.dtype = factsOf(tensor.element).dtype;
    asked.rank = tensor.rank;
    std::copy(std::begin(shaped.extent), std::end(shaped.extent), asked.extent);
    std::copy(std::begin(shaped.stride), std::end(shaped.stride), asked.stride);
  }

  //===-- Workspace ----------------------------------------------------------------------------------------------===//

  /// Tensors that must be zero first.
  fagen_status layWorkspace() {
    uint64_t end = 0;
    for (const bool isZeroed : {true, false}) {
      for (uint32_t i = 0; i < recipe.tensor_count; ++i) {
        const fagen_recipe_tensor &tensor = tensorAt(recipe, i);
        if (!isInWorkspace(tensor) || ((tensor.flags & FAGEN_TENSOR_ZEROED) != 0) != isZeroed)
          continue;
        bound.tensors[i].offset = end;
        end += uint64_t(elementsOf(tensor, bound.tensors[i])) * factsOf(tensor.element).bytes;
        end = (end + kProgramWorkspaceAlignment - 1) / kProgramWorkspaceAlignment * kProgramWorkspaceAlignment;
      }
      bound.zeroedBytes = isZeroed ? end : bound.zeroedBytes;
    }
    bound.workspaceBytes = end;
    return FAGEN_OK;
  }

  template <typename NameOf>
  [[gnu::cold]] fagen_status failUnknown(const char *what, const char *name, uint32_t count, NameOf nameOf) const {
    Suggestion names(name);
    for (uint32_t i = 0; i < count; ++i)
      if (strcmp(what, "tensor") != 0 || !isInWorkspace(tensorAt(recipe, i)))
        names.add(nameOf(i));
    return fail(FAGEN_INVALID, "%s has no %s '%s'%s", program, what, name, names.text());
  }

  const char *const program;
  const fagen_recipe &recipe;
  const fagen_call &call;
  const bool mayFill;
  BoundCall &bound;
  Source sources[FAGEN_MAX_NUMBERS];
};

} // namespace

fagen_status bindCall(const fagen_row &row, const fagen_call &call, uint32_t sms, bool mayFill, BoundCall &bound) {
  bound.values[FAGEN_VAR_SMS] = sms;
  return Binder(row, call, mayFill, bound).bind();
}

fagen_status countCtas(const BoundCall &bound, const fagen_row &row, uint32_t launch, uint32_t &ctas) {
  const std::optional<int64_t> count = valueOf(bound, bound.recipe->ctas[launch]);
  if (!count || *count < 0 || *count > kMaxCount)
    return fail(FAGEN_UNSUPPORTED, "%s: launch %s would have %lld CTAs; 0 to %lld are possible", bound.program,
                row.launches[launch].symbol, (long long)count.value_or(-1), (long long)kMaxCount);
  ctas = uint32_t(*count);
  return FAGEN_OK;
}

} // namespace fagen

// fagen: the values of a form's arguments that nobody gave, drawn by a seed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "form.h"

namespace fagen::lab {

/// Of a scalar, the form's `index`-th: in its range, within what lengths make interesting.
double drawNumber(const FormDefinition &form, const FormParam &param, const Shape &shape, uint64_t seed,
                  uint32_t index);

/// Fills a tensor of these extents, the form's `index`-th, with numbers that the param's element type holds.
void drawTensor(const FormDefinition &form, const FormParam &param, const Shape &shape, uint64_t seed, uint32_t index,
                FormTensor &tensor);

/// As an element of the param holds it.
double roundedToElement(const FormParam &param, double x);

} // namespace fagen::lab

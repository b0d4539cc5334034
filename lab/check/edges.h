// fagen: problems in which the key tiles that a row's form needs begin and end next to the edges of tiles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lab/cases/cases.h"
#include "lab/cases/form.h"

namespace fagen::lab {

/// Some sixty small problems of `base`, whose dtype, form and head dimensions they have, or some forty where the
/// form takes tensors of integers; with three batches or heads where it takes an integer for each, and two where it
/// takes more than one for each. Tiles are of `rows` query rows by `keys` keys; where one has the rows of several
/// heads, these are `group` for each K/V head, else 1.
///
/// A kernel derives from its form which key tiles a tile of rows sees, and which of them all rows see whole. A mistake
/// by one in such a bound shows only where a key that decides lies next to an edge of a tile. So
///  - the first row of a tile, or the row after its last one, sees up to a key at most two before or after an edge;
///  - integers of the form are small, or one to three key tiles, or that and a tile of rows, and up to two more or
///  less:
///    a window then has an edge at its left, whole tiles and an edge at its right, and ends next to an edge itself;
///  - integers of a tensor by batch or head go up by a little less than a key tile, or are at edges of tiles; those by
///  query or key are the same in runs or blocks one key longer than a tile or two, and begin below 0; those of another
///  batch are as in the first one, some keys earlier or later;
///  - maps are of a few blocks, fewer than there are, one of them of one column;
///  - of forms without tensors windows are also about as long as two tiles of rows, which a tile of two key tiles' rows
///  needs;
///  - rows lie before the first key by more than a key tile;
///  - lengths are those of one to three tiles of rows, alone or with one row of the next.
/// Which param is a window nobody asks: each takes each place in turn, within its range. So do tensors.
std::vector<Case> edgeCases(const Case &base, const FormDefinition &form, int64_t rows, int64_t keys, int64_t group);

} // namespace fagen::lab

// fagen: a program's row made by hand: a product of matrices whose second launch adds a strided bias.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "TestTable.h"

#include <cmath>

namespace fagen::test {

/// Program gemm for sm_89: a f16[M, K], b f16[N, K], bias f32[M, N] strided, c f16[M, N] written; scale f32; a counter
/// and parts in the workspace. Its argument: maps of a and bias, pointers to c and the parts, bias's stride, M, scale.
struct TestRecipe {
  using Ops = std::vector<fagen_op>;
  static constexpr int64_t kM = FAGEN_VAR_NUMBER_0, kN = kM + 1, kK = kM + 2;

  fagen_op m{FAGEN_OP_VARIABLE, 0, kM}, n{FAGEN_OP_VARIABLE, 0, kN}, k{FAGEN_OP_VARIABLE, 0, kK};
  fagen_op one{FAGEN_OP_CONSTANT, 0, 1};
  Ops tiles{m, {FAGEN_OP_CONSTANT, 0, 128}, {FAGEN_OP_CEIL_DIV, 0, 0}, n, {FAGEN_OP_MUL, 0, 0}};
  Ops resident{m, {FAGEN_OP_VARIABLE, 0, FAGEN_VAR_SMS}, {FAGEN_OP_MIN, 0, 0}};
  Ops parts{m, {FAGEN_OP_CONSTANT, 0, 3}, {FAGEN_OP_MUL, 0, 0}};
  fagen_expression ofM{&m, 1, 0}, ofN{&n, 1, 0}, ofK{&k, 1, 0}, ofOne{&one, 1, 0};
  fagen_expression ofParts{parts.data(), uint32_t(parts.size()), 0};
  fagen_recipe_number numbers[4] = {{"M", FAGEN_ARG_I32, 0, 0, 1e9},
                                    {"N", FAGEN_ARG_I32, 0, 0, 1e9},
                                    {"K", FAGEN_ARG_I32, 0, 0, 1e9},
                                    {"scale", FAGEN_ARG_F32, 0, -INFINITY, INFINITY}};
  fagen_recipe_tensor tensors[6] = {
      {"a", "f16[M, K]", FAGEN_ELEMENT_F16, 2, 0, 16, {ofM, ofK}, 0, 0},
      {"b", "bf16[N, K]", FAGEN_ELEMENT_BF16, 2, 0, 16, {ofN, ofK}, 0, 0},
      {"bias", "f32[M, N]", FAGEN_ELEMENT_F32, 2, FAGEN_TENSOR_STRIDED, 16, {ofM, ofN}, 0, 0},
      {"c", "f16[M, N]", FAGEN_ELEMENT_F16, 2, FAGEN_TENSOR_WRITTEN | FAGEN_TENSOR_STRIDED, 4, {ofM, ofN}, 0, 0},
      {"parts", "f32[M * 3]", FAGEN_ELEMENT_F32, 1, FAGEN_TENSOR_WORKSPACE, 16, {ofParts}, 0, 0},
      {"next", "u32[1]", FAGEN_ELEMENT_U32, 1, FAGEN_TENSOR_WORKSPACE | FAGEN_TENSOR_ZEROED, 4, {ofOne}, 0, 0}};
  fagen_recipe_map maps[2] = {{0, 2, 128, 0, {{ofK, ofOne, 64, FAGEN_OWN_STRIDE}, {ofM, ofK, 128, FAGEN_OWN_STRIDE}}},
                              {2, 2, 0, 0, {{ofN, ofOne, 32, FAGEN_OWN_STRIDE}, {ofM, ofN, 8, 0}}}};
  fagen_recipe_field fields[8] = {{FAGEN_FIELD_MAP, 0, 0, 0, {}},       {FAGEN_FIELD_MAP, 128, 1, 0, {}},
                                  {FAGEN_FIELD_POINTER, 256, 3, 0, {}}, {FAGEN_FIELD_POINTER, 264, 4, 0, {}},
                                  {FAGEN_FIELD_POINTER, 272, 5, 0, {}}, {FAGEN_FIELD_STRIDE, 280, 2, 0, {}},
                                  {FAGEN_FIELD_I32, 288, 0, 0, ofM},    {FAGEN_FIELD_F32, 292, 3, 0, {}}};
  fagen_expression ctas[2] = {{tiles.data(), uint32_t(tiles.size()), 0},
                              {resident.data(), uint32_t(resident.size()), 0}};
  fagen_recipe recipe = {sizeof(fagen_recipe),
                         320,
                         tensors,
                         numbers,
                         fields,
                         maps,
                         ctas,
                         6,
                         sizeof(fagen_recipe_tensor),
                         4,
                         sizeof(fagen_recipe_number),
                         8,
                         sizeof(fagen_recipe_field),
                         2,
                         sizeof(fagen_recipe_map)};

  fagen_row row(const char *name = "gemm") {
    fagen_row made = makeRow(name);
    made.pass = FAGEN_PASS_PROGRAM;
    made.dtype = made.mask = made.lse = made.head_dim_qk = made.head_dim_v = made.tile_rows = made.tile_keys = 0;
    made.dispatch = FAGEN_ROW_BY_NAME;
    made.alignment = 1;
    made.launch_count = 2;
    made.launches[0] = {"multiply", FAGEN_GRID_RECIPE, 128, 50000, 0};
    made.launches[1] = {"add", FAGEN_GRID_RECIPE, 64, 0, 0};
    made.recipe = &recipe;
    return made;
  }
};

/// A call of it: M = 300, N = 40, K = 64, scale = 0.5; results asked for.
struct TestCall {
  alignas(16) unsigned char memory[64] = {};
  /// Nobody writes there; far from what operands would be.
  void *result = reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(memory) + (uintptr_t{1} << 30));
  fagen_named_tensor tensors[4] = {{"a", memory, FAGEN_DTYPE_F16, 2, {300, 64}, {}},
                                   {"b", memory, FAGEN_DTYPE_BF16, 2, {40, 64}, {}},
                                   {"bias", memory, FAGEN_DTYPE_F32, 2, {300, 40}, {48, 1}},
                                   {"c", result, 0, 0, {}, {}}};
  fagen_named_number number = {"scale", FAGEN_ARG_F32, 0, 0, 0.5};
  fagen_call call = fagen_call_init();

  TestCall() {
    call.program = "gemm";
    call.tensors = tensors;
    call.numbers = &number;
    call.tensor_count = 4;
    call.number_count = 1;
  }
};

} // namespace fagen::test

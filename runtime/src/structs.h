// fagen: where the structs of the ABI may end: a caller's that is older or newer than this library.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Structs grow at their end, a field at a time. One whose size ends within a field is of no version, and half a pointer
// would be read of it.
#pragma once

#include <fagen/table.h>

#include <cstddef>
#include <iterator>

namespace fagen {

struct FieldSpan {
  uint32_t begin, end;
};

/// kAll: the fields of a struct, in order.
template <typename T> struct FieldsOf;

/// The size that a struct of this ABI has at least: that of its first version.
template <typename T> inline constexpr uint32_t kLeastSize = sizeof(T);
template <> inline constexpr uint32_t kLeastSize<fagen_choice> = offsetof(fagen_choice, scratch_bytes);
template <> inline constexpr uint32_t kLeastSize<fagen_problem> = offsetof(fagen_problem, pass);
template <> inline constexpr uint32_t kLeastSize<fagen_row> = offsetof(fagen_row, shared_tiles);
template <> inline constexpr uint32_t kLeastSize<fagen_table> = offsetof(fagen_table, claim);
template <> inline constexpr uint32_t kLeastSize<fagen_tensors> = offsetof(fagen_tensors, args);

#define FIELD(name) {offsetof(Struct, name), offsetof(Struct, name) + sizeof(Struct::name)}

template <> struct FieldsOf<fagen_problem> {
  using Struct = fagen_problem;
  static constexpr FieldSpan kAll[] = {
      FIELD(struct_size), FIELD(abi),       FIELD(pass),      FIELD(dtype),    FIELD(mask),     FIELD(flags),
      FIELD(batch),       FIELD(heads),     FIELD(kv_heads),  FIELD(seq_q),    FIELD(seq_kv),   FIELD(head_dim_qk),
      FIELD(head_dim_v),  FIELD(q_stride),  FIELD(k_stride),  FIELD(v_stride), FIELD(o_stride), FIELD(lse_stride),
      FIELD(scale),       FIELD(has_scale), FIELD(alignment), FIELD(variant),  FIELD(form),     FIELD(args),
      FIELD(arg_count),   FIELD(kv_dtype)};
};

template <> struct FieldsOf<fagen_choice> {
  using Struct = fagen_choice;
  static constexpr FieldSpan kAll[] = {FIELD(struct_size),
                                       FIELD(abi),
                                       FIELD(table),
                                       FIELD(row),
                                       FIELD(device),
                                       FIELD(workspace_bytes),
                                       FIELD(workspace_alignment),
                                       FIELD(reserved),
                                       FIELD(state),
                                       FIELD(scratch_bytes)};
};

template <> struct FieldsOf<fagen_tensors> {
  using Struct = fagen_tensors;
  static constexpr FieldSpan kAll[] = {FIELD(struct_size), FIELD(abi), FIELD(q),    FIELD(k),         FIELD(v),
                                       FIELD(o),           FIELD(lse), FIELD(args), FIELD(arg_count), FIELD(reserved)};
};

template <> struct FieldsOf<fagen_device_info> {
  using Struct = fagen_device_info;
  static constexpr FieldSpan kAll[] = {FIELD(struct_size), FIELD(abi),
                                       FIELD(ordinal),     FIELD(compute_capability),
                                       FIELD(sm_count),    FIELD(shared_bytes_per_block),
                                       FIELD(name)};
};

template <> struct FieldsOf<fagen_choice_info> {
  using Struct = fagen_choice_info;
  static constexpr FieldSpan kAll[] = {FIELD(struct_size),  FIELD(abi),       FIELD(variant),    FIELD(target),
                                       FIELD(symbol),       FIELD(origin),    FIELD(grid),       FIELD(threads),
                                       FIELD(shared_bytes), FIELD(registers), FIELD(local_bytes)};
};

template <> struct FieldsOf<fagen_call> {
  using Struct = fagen_call;
  static constexpr FieldSpan kAll[] = {FIELD(struct_size),  FIELD(abi),     FIELD(program),
                                       FIELD(tensors),      FIELD(numbers), FIELD(tensor_count),
                                       FIELD(number_count), FIELD(flags),   FIELD(reserved)};
};

template <> struct FieldsOf<fagen_table> {
  using Struct = fagen_table;
  static constexpr FieldSpan kAll[] = {
      FIELD(struct_size),    FIELD(abi),          FIELD(kernel),     FIELD(spec),       FIELD(rows),
      FIELD(keys),           FIELD(schedules),    FIELD(select),     FIELD(row_count),  FIELD(row_size),
      FIELD(schedule_count), FIELD(select_count), FIELD(claim),      FIELD(claim_text), FIELD(claim_size),
      FIELD(reserved),       FIELD(forms),        FIELD(form_count), FIELD(form_size)};
};

/// Its first version knows all fields before those that tables learned later.
template <> struct FieldsOf<fagen_row> {
  using Struct = fagen_row;
  static constexpr FieldSpan kAll[] = {{0, offsetof(fagen_row, shared_tiles)},
                                       FIELD(shared_tiles),
                                       FIELD(shared_tiles_size),
                                       FIELD(reserved),
                                       FIELD(recipe)};
};

#undef FIELD

/// Whether the fields follow each other up to the struct's end, with no more between them than alignment leaves.
template <typename T> consteval bool namesAllFields() {
  uint32_t end = 0;
  for (const FieldSpan &field : FieldsOf<T>::kAll) {
    if (field.begin < end || field.begin - end >= alignof(T))
      return false;
    end = field.end;
  }
  return end <= sizeof(T) && sizeof(T) - end < alignof(T);
}
static_assert(namesAllFields<fagen_problem>() && namesAllFields<fagen_choice>() && namesAllFields<fagen_tensors>() &&
              namesAllFields<fagen_device_info>() && namesAllFields<fagen_choice_info>() &&
              namesAllFields<fagen_table>() && namesAllFields<fagen_row>() && namesAllFields<fagen_call>());

/// Whether a struct of so many bytes ends within one of the fields.
template <typename T> constexpr bool endsInField(uint32_t size) {
  if (size >= sizeof(T)) // the usual case, and what a newer caller has
    return false;
  for (const FieldSpan &field : FieldsOf<T>::kAll)
    if (size > field.begin && size < field.end)
      return true;
  return false;
}

} // namespace fagen

/* fagen: where the members of the first ABI's structs lie, by the headers that this file is compiled with.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <fagen/table.h>
#include <stdio.h>

#define AT(type, member) printf(#type "." #member " %zu %zu\n", offsetof(type, member), sizeof(((type *)0)->member))

static void interface(void) {
  AT(fagen_problem, struct_size), AT(fagen_problem, abi), AT(fagen_problem, pass), AT(fagen_problem, dtype);
  AT(fagen_problem, mask), AT(fagen_problem, flags), AT(fagen_problem, batch), AT(fagen_problem, heads);
  AT(fagen_problem, kv_heads), AT(fagen_problem, seq_q), AT(fagen_problem, seq_kv), AT(fagen_problem, head_dim_qk);
  AT(fagen_problem, head_dim_v), AT(fagen_problem, q_stride), AT(fagen_problem, k_stride);
  AT(fagen_problem, v_stride), AT(fagen_problem, o_stride), AT(fagen_problem, lse_stride), AT(fagen_problem, scale);
  AT(fagen_problem, has_scale), AT(fagen_problem, alignment), AT(fagen_problem, variant);
  AT(fagen_choice, struct_size), AT(fagen_choice, abi), AT(fagen_choice, table), AT(fagen_choice, row);
  AT(fagen_choice, device), AT(fagen_choice, workspace_bytes), AT(fagen_choice, workspace_alignment);
  AT(fagen_choice, state), AT(fagen_tensors, struct_size), AT(fagen_tensors, abi), AT(fagen_tensors, q);
  AT(fagen_tensors, k), AT(fagen_tensors, v), AT(fagen_tensors, o), AT(fagen_tensors, lse);
  AT(fagen_device_info, ordinal), AT(fagen_device_info, compute_capability), AT(fagen_device_info, sm_count);
  AT(fagen_device_info, shared_bytes_per_block), AT(fagen_device_info, name);
  AT(fagen_choice_info, variant), AT(fagen_choice_info, target), AT(fagen_choice_info, symbol);
  AT(fagen_choice_info, origin), AT(fagen_choice_info, grid), AT(fagen_choice_info, threads);
  AT(fagen_choice_info, shared_bytes), AT(fagen_choice_info, registers), AT(fagen_choice_info, local_bytes);
}

/* The size, too, of those that lie in lists: these are not stepped over by a size of their own. */
static void table(void) {
  AT(fagen_binary, kind), AT(fagen_binary, sm), AT(fagen_binary, exact), AT(fagen_binary, data);
  AT(fagen_binary, size), AT(fagen_code, source), AT(fagen_code, source_name), AT(fagen_code, binaries);
  AT(fagen_code, binary_count), AT(fagen_op, kind), AT(fagen_op, value), AT(fagen_select, condition);
  AT(fagen_select, condition_size), AT(fagen_select, schedule), AT(fagen_select, text);
  AT(fagen_workspace, name), AT(fagen_workspace, bytes), AT(fagen_workspace, bytes_size);
  AT(fagen_workspace, alignment), AT(fagen_map, tensor), AT(fagen_map, box_columns), AT(fagen_map, box_rows);
  AT(fagen_map, swizzle), AT(fagen_map, box_panels), AT(fagen_row, variant), AT(fagen_row, target);
  AT(fagen_row, sm), AT(fagen_row, exact), AT(fagen_row, pass), AT(fagen_row, lse), AT(fagen_row, head_dim_v);
  AT(fagen_row, alignment), AT(fagen_row, launch_count), AT(fagen_row, launches), AT(fagen_row, workspace);
  AT(fagen_row, code), AT(fagen_row, maps), AT(fagen_row, map_count), AT(fagen_table, struct_size);
  AT(fagen_table, kernel), AT(fagen_table, rows), AT(fagen_table, keys), AT(fagen_table, schedules);
  AT(fagen_table, select), AT(fagen_table, row_count), AT(fagen_table, row_size), AT(fagen_table, select_count);
  printf("%zu %zu %zu %zu %zu\n", sizeof(fagen_binary), sizeof(fagen_op), sizeof(fagen_select), sizeof(fagen_workspace),
         sizeof(fagen_map));
}

int main(void) {
  interface();
  table();
  return 0;
}

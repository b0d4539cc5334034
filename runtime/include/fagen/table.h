/* fagen: what a generated kernel set exports: its rows, its select lines, its code. Plain C data.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Within one FAGEN_ABI structs only grow at their end; a table says how large its rows and forms are, a form how large
 * its params, and the library steps over them by that size. Rows are sorted by fagen_row_key, so that a problem's rows
 * are found by binary search. */
#ifndef FAGEN_TABLE_H
#define FAGEN_TABLE_H

#include <fagen/fagen.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Code ---- */

enum { FAGEN_BINARY_CUBIN = 1, FAGEN_BINARY_PTX = 2 };

/* Machine code or PTX of one row. PTX text ends in a NUL byte, which size counts. */
typedef struct fagen_binary {
  uint32_t kind;
  uint32_t sm;    /* compute capability that it was built for: 89 */
  uint32_t exact; /* built for an architecture-specific target: runs on that compute capability only */
  uint32_t reserved;
  const void *data;
  uint64_t size;
} fagen_binary;

/* What fagen_prepare can make a row of: binaries first, then source. A row needs at least one of them. */
typedef struct fagen_code {
  const char *source;      /* CUDA C++ for NVRTC, or NULL */
  const char *source_name; /* its path in the generated directory: "sm_89/l4_fp16_prefill_f16_d64_none.cu" */
  const fagen_binary *binaries;
  uint64_t binary_count;
} fagen_code;

/* ---- Programs ---- */

/* Postfix programs over run-time values, in 64-bit integers that wrap. Division truncates towards zero; by zero it ends
 * the program without a value, which makes a condition false. */
enum {
  FAGEN_OP_CONSTANT = 0, /* pushes value */
  FAGEN_OP_VARIABLE = 1, /* pushes the variable that value names */
  FAGEN_OP_ADD = 2,
  FAGEN_OP_SUB = 3,
  FAGEN_OP_MUL = 4,
  FAGEN_OP_DIV = 5,
  FAGEN_OP_MOD = 6,
  FAGEN_OP_CEIL_DIV = 7,
  FAGEN_OP_NEG = 8,
  FAGEN_OP_NOT = 9,
  FAGEN_OP_EQ = 10,
  FAGEN_OP_NE = 11,
  FAGEN_OP_LT = 12,
  FAGEN_OP_LE = 13,
  FAGEN_OP_GT = 14,
  FAGEN_OP_GE = 15,
  FAGEN_OP_AND = 16,
  FAGEN_OP_OR = 17,
  FAGEN_OP_MIN = 18,
  FAGEN_OP_MAX = 19,
  FAGEN_OP_FLOOR_DIV = 20 /* the largest integer not above a / b */
};
enum {
  FAGEN_VAR_BATCH = 0,
  FAGEN_VAR_HEADS = 1,
  FAGEN_VAR_KV_HEADS = 2,
  FAGEN_VAR_SEQ_Q = 3,
  FAGEN_VAR_SEQ_KV = 4,
  FAGEN_VAR_SMS = 5,
  /* From here on the problem's keys: dtype is the number of fagen.h, mask that or the number of the table's form. */
  FAGEN_VAR_HEAD_DIM_QK = 6,
  FAGEN_VAR_HEAD_DIM_V = 7,
  FAGEN_VAR_DTYPE = 8,
  FAGEN_VAR_MASK = 9,
  FAGEN_VAR_SPLITS = 10, /* of a workspace only: how many splits the query chose */
  FAGEN_VAR_ROW = 11,    /* of shared_tiles only: the first row of a tile */
  /* Of an extent of a form's tensor and of shared_tiles only: the value of the form's first param; the others follow by
   * their places. */
  FAGEN_VAR_FORM_0 = 64,
  FAGEN_VAR_NUMBER_0 = 64 /* of a recipe only, which has sms besides: the program's first number, and so on */
};

#define FAGEN_PROGRAM_DEPTH 32 /* values on the stack at once, at most */

typedef struct fagen_op {
  uint32_t kind;
  uint32_t reserved;
  int64_t value;
} fagen_op;

/* One line of select. Lines are read from the first; one without operations is always true. */
typedef struct fagen_select {
  const fagen_op *condition;
  uint32_t condition_size;
  uint32_t schedule;
  const char *text; /* as the spec has it: "seq_q <= 32", "otherwise" */
} fagen_select;

/* ---- Forms ---- */

#define FAGEN_MAX_FORMS 61       /* of a table: a row's mask has 6 bits, and none and causal take the first numbers */
#define FAGEN_MAX_FORM_PARAMS 32 /* of a form */
#define FAGEN_MAX_FORM_BYTES 192 /* of a form's numbers, strides and pointers in the kernels' argument */

/* fagen_form_param.element, and fagen_recipe_tensor.element, which has no bits. A bit is one of the 32 of a word, low
 * bit first. */
enum {
  FAGEN_ELEMENT_BIT = 1,
  FAGEN_ELEMENT_U8 = 2,
  FAGEN_ELEMENT_I32 = 3,
  FAGEN_ELEMENT_F16 = 4,
  FAGEN_ELEMENT_BF16 = 5,
  FAGEN_ELEMENT_F32 = 6,
  FAGEN_ELEMENT_U32 = 7, /* from here on of recipes only */
  FAGEN_ELEMENT_E4M3 = 8
};
/* fagen_form_param.flags */
enum {
  FAGEN_PARAM_ASCENDING = 1u << 0, /* along its last extent, by the caller's promise */
  FAGEN_PARAM_IN_MASK = 1u << 1    /* which keys are seen depends on it */
};
#define FAGEN_PARAM_BOUND UINT32_MAX /* fagen_form_param.offset of a param whose value the spec gives */

/* A param of a form. */
typedef struct fagen_form_param {
  const char *name;
  uint32_t element; /* of a scalar i32 or f32 */
  uint32_t rank;    /* at most 4; 0: a scalar */
  /* In the form's part of the kernels' argument, which follows attention's parameters (device/form.h); a multiple of 8.
   * A scalar takes 16 bytes, a pointer and a number; a tensor of rank r a pointer and r strides. */
  uint32_t offset;
  uint32_t flags;
  double low, high; /* what it may be, both ends included; infinite: any finite number */
  double bound;     /* where offset is FAGEN_PARAM_BOUND */
  struct {
    const fagen_op *ops; /* a program over the problem's sizes and over params of this form */
    uint32_t size;
    uint32_t reserved;
  } extents[4];
} fagen_form_param;

/* A form as the spec uses it. Forms of one name differ in what is bound; of one hash they are the same but for that. */
typedef struct fagen_form {
  const char *name;
  const char *text; /* as the spec uses it: "gemma2", "local(window = 128)" */
  uint64_t hash;    /* of what the form says, bound values apart */
  const fagen_form_param *params;
  uint32_t param_count, param_size;
  uint32_t bytes; /* of the form's part of the kernels' argument */
  uint32_t reserved;
} fagen_form;

/* Numbers of masks in rows, keys and programs: FAGEN_MASK_..., then the table's forms. */
#define FAGEN_MASK_FORM_0 3u

/* ---- Recipes: how a program's launches are made ---- */

/* fagen_row.pass of a program's row. Its key has no more than that, target and order: such rows stand after all others.
 * Of several rows with one name each is for another target. */
#define FAGEN_PASS_PROGRAM 3u

#define FAGEN_MAX_TENSORS 32          /* of a program */
#define FAGEN_MAX_NUMBERS 32          /* of a program: sizes and params */
#define FAGEN_MAX_ARGUMENT_BYTES 4096 /* of its kernels' argument */

/* A program over a recipe's numbers and sms. */
typedef struct fagen_expression {
  const fagen_op *ops;
  uint32_t size;
  uint32_t reserved;
} fagen_expression;

/* fagen_recipe_tensor.flags */
enum {
  FAGEN_TENSOR_WRITTEN = 1u << 0,
  FAGEN_TENSOR_STRIDED = 1u << 1,   /* all strides but the last are the caller's; else it is dense */
  FAGEN_TENSOR_WORKSPACE = 1u << 2, /* lies in the workspace: callers do not give it */
  FAGEN_TENSOR_ZEROED = 1u << 3,    /* must be zero before the first launch; in a workspace it is left so */
  /* What the caller promises of integers, and only the emulator looks at: */
  FAGEN_TENSOR_ASCENDING = 1u << 4, /* along the last dimension none is below the one before it */
  FAGEN_TENSOR_DISTINCT = 1u << 5,  /* no two are the same */
  FAGEN_TENSOR_IN_RANGE = 1u << 6   /* low to high */
};

typedef struct fagen_recipe_tensor {
  const char *name;
  const char *text; /* as the program declares it: "f16[M, K]" */
  uint32_t element; /* FAGEN_ELEMENT_... */
  uint32_t rank;    /* 1 to FAGEN_MAX_RANK; the last dimension is dense */
  uint32_t flags;
  uint32_t alignment; /* bytes, a power of two: of its address and of each stride that is used */
  fagen_expression extents[FAGEN_MAX_RANK];
  /* Only where fagen_recipe.tensor_size has room for it. */
  int64_t low, high; /* FAGEN_TENSOR_IN_RANGE: what elements may be, both ends included */
} fagen_recipe_tensor;

/* A size or a param. A size follows from an extent that is nothing else; what follows from none is the caller's to
 * give. */
typedef struct fagen_recipe_number {
  const char *name;
  uint32_t kind; /* FAGEN_ARG_I32 or _F32 */
  uint32_t reserved;
  double low, high; /* what it may be, both ends included; infinite: any finite number */
} fagen_recipe_number;

/* A tensor map among a kernel's parameters, and the box that one copy moves. Dimension 0 is dense. */
typedef struct fagen_recipe_map {
  uint32_t tensor;  /* whose address it has */
  uint32_t rank;    /* 1 to FAGEN_MAX_RANK */
  uint32_t swizzle; /* bytes of a swizzled row: 128, 64, 32; 0: none */
  uint32_t reserved;
  struct {
    fagen_expression size, stride; /* elements */
    uint32_t box;                  /* elements, 1 to 256 */
    uint32_t along; /* where the tensor is strided: its dimension whose stride this is. FAGEN_OWN_STRIDE: `stride` is */
  } dimensions[FAGEN_MAX_RANK];
} fagen_recipe_map;
#define FAGEN_OWN_STRIDE UINT32_MAX

/* fagen_recipe_field.kind */
enum {
  FAGEN_FIELD_POINTER = 1, /* the address of tensor `index` */
  FAGEN_FIELD_STRIDE = 2,  /* 64 bits: elements from one to the next along `dimension` of tensor `index` */
  FAGEN_FIELD_I32 = 3,     /* `value` */
  FAGEN_FIELD_I64 = 4,     /* `value` */
  FAGEN_FIELD_F32 = 5,     /* number `index` */
  FAGEN_FIELD_MAP = 6      /* map `index`: 128 bytes */
};

/* A member of the struct that each kernel of the program takes by value. */
typedef struct fagen_recipe_field {
  uint32_t kind;
  uint32_t offset; /* bytes, a multiple of what the member takes; of a map 64 */
  uint32_t index, dimension;
  fagen_expression value;
} fagen_recipe_field;

typedef struct fagen_recipe {
  uint32_t struct_size;
  uint32_t argument_bytes; /* of the struct */
  const fagen_recipe_tensor *tensors;
  const fagen_recipe_number *numbers;
  const fagen_recipe_field *fields;
  const fagen_recipe_map *maps;
  const fagen_expression *ctas; /* of each launch of the row */
  uint32_t tensor_count, tensor_size, number_count, number_size;
  uint32_t field_count, field_size, map_count, map_size;
} fagen_recipe;

/* ---- Rows ---- */

enum {
  FAGEN_GRID_TILES =
      1, /* one CTA for each tile of query rows, head and batch: ceil(seq_q / tile_rows) * heads * batch */
  /* One CTA for each tile of rows, K/V head and batch; the rows of a K/V head are those of all query heads that share
   * it: ceil(seq_q * (heads / kv_heads) / tile_rows) * kv_heads * batch. */
  FAGEN_GRID_PACKED_TILES = 3,
  FAGEN_GRID_PERSISTENT = 5, /* one CTA for each SM, and no more than tiles: they take tiles in turn */
  /* As many as tiles for each split of the keys: `reserved` splits, or where that is 0 what fills the GPU, or where it
   * is FAGEN_SPLITS_OF_SHARED what fills it with the key tiles that the row's shared_tiles counts. */
  FAGEN_GRID_SPLITS = 6,
  FAGEN_GRID_PACKED_SPLITS = 7,
  /* As many as tiles for each `reserved` keys, whatever the GPU. */
  FAGEN_GRID_SPLIT_KEYS = 8,
  FAGEN_GRID_PACKED_SPLIT_KEYS = 9,
  FAGEN_GRID_ROWS = 10, /* a warp for each query row of each head and batch */
  /* As persistent, in clusters of `reserved` CTAs that take tiles next to each other: a head has as many tiles as are
   * whole clusters, and the grid is whole clusters. */
  FAGEN_GRID_CLUSTERS = 11,
  /* Eight CTAs for each of the first launch's, not counting splits: their warps take the key tiles of all tiles of
   * query rows in turn. Such a launch comes before the others, wherever it stands in the row. The last part of the
   * workspace is what it leaves for them; fagen_run zeroes it after them. */
  FAGEN_GRID_KEY_TILES = 12,
  /* Of a program's row: as many as its recipe says, in clusters of `reserved`, or 0. The kernel says so itself; the
   * emulator asks. */
  FAGEN_GRID_RECIPE = 13
};
#define FAGEN_KEY_TILE_CTAS 8

/* Joins fagen_row.dtype, and that of a key, where K and V have other elements than Q and O. */
enum { FAGEN_KV_E4M3 = 1u << 2, FAGEN_KV_E5M2 = 2u << 2 };

/* Which rows dispatch may pick. */
enum {
  FAGEN_ROW_DISPATCHED = 0, /* select decides */
  FAGEN_ROW_FALLBACK = 1,   /* only when alignment or strides exclude every other row */
  FAGEN_ROW_BY_NAME = 2     /* reached through fagen_problem.variant only */
};

#define FAGEN_MAX_LAUNCHES 4
#define FAGEN_MAX_SPLITS 128
#define FAGEN_SPLITS_OF_SHARED 0xffffffffu

typedef struct fagen_launch {
  const char *symbol;
  uint32_t grid;
  uint32_t threads;
  uint32_t shared_bytes; /* dynamic */
  uint32_t reserved;     /* what FAGEN_GRID_SPLITS, _SPLIT_KEYS, _CLUSTERS and _RECIPE say of it; else 0 */
} fagen_launch;

/* A part of the workspace; parts follow each other, each at a multiple of its alignment. */
typedef struct fagen_workspace {
  const char *name;
  const fagen_op *bytes; /* a program */
  uint32_t bytes_size;
  uint32_t alignment;
} fagen_workspace;

/* A tensor map that the row's kernels take (device/params.h), and the box that one copy moves. */
enum { FAGEN_MAP_Q = 0, FAGEN_MAP_K = 1, FAGEN_MAP_V = 2, FAGEN_MAP_O = 3 };

typedef struct fagen_map {
  uint32_t tensor;
  uint32_t box_columns, box_rows; /* elements, at most 256 */
  uint16_t swizzle;               /* bytes of a swizzled row, which box_columns fill: 128, 64, 32; 0: none */
  uint16_t box_panels; /* 0: the map has the dimensions columns, rows, heads, batch. Else columns are split in
                          panels of box_columns, of which the box has so many, one after the other, and the
                          map has the dimensions columns of a panel, rows, panels, heads, batch */
} fagen_map;

/* One variant for one target. */
struct fagen_row {
  const char *variant;
  const char *target; /* "sm_89" */
  /* The target, the compute capabilities that run its text (last_sm 0: no end), and whether it is
   * architecture-specific. */
  uint32_t sm, first_sm, last_sm, exact;
  uint32_t pass, dtype, mask,
      lse; /* dtype: with FAGEN_KV_...; lse 1: can write LSE; mask FAGEN_MASK_FORM_0 + i: form i of the table */
  uint32_t head_dim_qk, head_dim_v;
  uint32_t schedule;  /* index into fagen_table.schedules */
  uint32_t dispatch;  /* FAGEN_ROW_... */
  uint32_t order;     /* place in the spec's expansion */
  uint32_t alignment; /* bytes, of base pointers and strides */
  uint32_t tile_rows, tile_keys;
  uint32_t launch_count, workspace_count;
  fagen_launch launches[FAGEN_MAX_LAUNCHES];
  const fagen_workspace *workspace;
  const fagen_code *code;
  const fagen_map *maps; /* at most one for each tensor */
  uint32_t map_count;
  uint16_t scratch_parts; /* the last so many of the workspace's parts may hold anything before a launch; the others
                             must be zero, and are left so */
  uint16_t dependent_launches; /* bit i: launch i may begin before the launch before it has ended (FAGEN_FLAG_PDL) */
  /* From here on only where a launch says FAGEN_SPLITS_OF_SHARED: rows of older tables end above. How many key tiles
   * splits share of a tile of rows, a program; all where it names a number of the form that is on the device. */
  const fagen_op *shared_tiles;
  uint32_t shared_tiles_size;
  uint32_t reserved;
  /* From here on only where pass is FAGEN_PASS_PROGRAM. Of such a row variant is the program's name; sizes of a
   * problem, schedule, workspace and maps are 0. */
  const fagen_recipe *recipe;
};

struct fagen_table {
  uint32_t struct_size, abi;
  const char *kernel;
  const char *spec; /* base name: "l4_fp16.fa" */
  const fagen_row *rows;
  const uint64_t *keys; /* of the rows, ascending */
  const char *const *schedules;
  const fagen_select *select; /* ends in an otherwise line */
  uint32_t row_count, row_size, schedule_count, select_count;
  /* A program that is true for the problems this table was tuned for. A table whose claim holds, and whose select finds
   * a fitting row, wins over tables with a nearer target. If absent, the table claims nothing. */
  const fagen_op *claim;
  const char *claim_text; /* as the spec has it */
  uint32_t claim_size;
  uint32_t reserved;
  const fagen_form *forms;
  uint32_t form_count, form_size;
};

/* ---- Keys ---- */

/* The sort key of a row: pass 2, dtype 4 (FAGEN_KV_... among them), mask 6, head_dim_qk 12, head_dim_v 12 bits name the
 * problem; below them how it is dispatched 2, compute capability 10, architecture-specific 2 and order 14 bits. */
#define FAGEN_KEY_PROBLEM_SHIFT 28
static inline uint64_t fagen_problem_key(uint64_t pass, uint64_t dtype, uint64_t mask, uint64_t head_dim_qk,
                                         uint64_t head_dim_v) {
  return (pass << 62) | (dtype << 58) | (mask << 52) | (head_dim_qk << 40) | (head_dim_v << 28);
}

static inline uint64_t fagen_row_key(const fagen_row *row) {
  return fagen_problem_key(row->pass, row->dtype, row->mask, row->head_dim_qk, row->head_dim_v) |
         ((uint64_t)row->dispatch << 26) | ((uint64_t)row->sm << 16) | ((uint64_t)row->exact << 14) | row->order;
}

/* Checks a whole table: sizes, order, keys, programs, indices. For tests and for whoever builds tables by hand;
 * fagen_query trusts what it finds after a table's head. INVALID, ABI_MISMATCH. */
FAGEN_API fagen_status fagen_table_check(const fagen_table *table);

/* ---- Kernel sets that are files ---- */

/* Reads what `fagen SPEC -o DIR` wrote: path is the directory or its manifest.json. The table has the sources, which
 * fagen_prepare gives to NVRTC, so it runs whatever they say. It is checked as fagen_table_check does.
 * fagen_last_error() names file, line and key of what does not fit. INVALID, ABI_MISMATCH, OUT_OF_MEMORY; then *table
 * is NULL. */
FAGEN_API fagen_status fagen_table_load(const char *path, const fagen_table **table);

/* Frees a table of fagen_table_load. No device may have its rows prepared: destroy those first. NULL is ignored. */
FAGEN_API void fagen_table_release(const fagen_table *table);

#ifdef __cplusplus
}
#endif
#endif

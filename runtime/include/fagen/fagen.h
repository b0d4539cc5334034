/* fagen: the C interface of the runtime: query a kernel for a problem, prepare it, run it.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * C99, and no CUDA header is needed. The story of an application:
 *
 *   fagen_device *device;                       fagen_device_create(0, &device);
 *   fagen_problem problem = fagen_problem_init(); problem.dtype = FAGEN_DTYPE_F16; ...
 *   fagen_choice choice = fagen_choice_init();    fagen_query(tables, 1, &problem, device, &choice);
 *   fagen_prepare(&choice, device);             once: compiles or loads
 *   fagen_run(&choice, &tensors, NULL, 0, stream);
 *
 * O = softmax(scale * Q K^T + mask) V. Q is [batch, heads, seq_q, head_dim_qk], K [batch, kv_heads, seq_kv,
 * head_dim_qk], V [batch, kv_heads, seq_kv, head_dim_v], O [batch, heads, seq_q, head_dim_v]; the last dimension is
 * dense, the others have the caller's strides. LSE [batch, heads, seq_q] is the natural-log log-sum-exp in float.
 * Query head h reads K/V head h / (heads / kv_heads). A row whose keys are all masked gives O = 0 and LSE = -inf.
 *
 * A kernel set may have forms: scores, masks and sinks that its spec writes down (docs/Language.md). A problem names
 * one in place of a mask, and gives its params by name. With a form O = softmax(score(scale * Q K^T) + mask) V, and a
 * sink joins each row's sum: LSE includes it, and a row whose keys are all masked has O = 0 and LSE = sink.
 *
 * What tensors hold leads no kernel of a compiled set outside of the tensors, as shapes and strides describe them:
 * lengths, offsets, page tables, ids and numbers on the device may have any value. Reads of a form's tensors are held
 * to their extents, and numbers on the device to their range, by the kernels' text; of programs the compiler proves it
 * of each access (docs/Programs.md, Bounds). Wrong values then give wrong results. Two things are the caller's: that
 * pointers, extents and strides are right, and that nobody writes such a tensor while a launch reads it. What a form
 * or program promises of a tensor, as that ids ascend, is not checked here.
 *
 * Every function may be called from any thread. No function throws, exits or prints (but see FAGEN_VERBOSE in
 * docs/Runtime.md). On failure fagen_last_error() has the reason in words. */
#ifndef FAGEN_FAGEN_H
#define FAGEN_FAGEN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The number that library, application, tables and manifests must share. Within one number structs only grow at their
 * end, and struct_size tells how much of one the other side knows; a size that ends within a field is INVALID. */
#define FAGEN_ABI 1u

/* On every function of the library: a shared object that holds it shows it, whatever else that object hides. */
#if defined(__GNUC__)
#define FAGEN_API __attribute__((visibility("default")))
#else
#define FAGEN_API
#endif

typedef int32_t fagen_status;
enum {
  FAGEN_OK = 0,
  FAGEN_INVALID = 1,      /* an argument contradicts itself or the rules of this file */
  FAGEN_UNSUPPORTED = 2,  /* a valid problem that no row of the tables computes on this device */
  FAGEN_MISALIGNED = 3,   /* rows exist, but base pointers or strides are not aligned enough for any of them */
  FAGEN_WORKSPACE = 4,    /* the workspace is missing, too small or misaligned */
  FAGEN_NOT_PREPARED = 5, /* fagen_run before fagen_prepare */
  FAGEN_COMPILE = 6,      /* NVRTC is missing or refused the source */
  FAGEN_CUDA = 7,         /* the CUDA driver is missing or reported an error */
  FAGEN_ABI_MISMATCH = 8, /* a struct or table of another FAGEN_ABI */
  FAGEN_OUT_OF_MEMORY = 9 /* host or device memory */
};

/* fagen_problem.pass; 0 is forward. */
enum { FAGEN_PASS_FORWARD = 1, FAGEN_PASS_BACKWARD = 2 };
/* fagen_problem.dtype: of Q and O, and unless kv_dtype is given of K and V; must be given. From F32 on of tensors of
 * programs only, but for E5M2, which only kv_dtype may be. */
enum {
  FAGEN_DTYPE_F16 = 1,
  FAGEN_DTYPE_BF16 = 2,
  FAGEN_DTYPE_E4M3 = 3,
  FAGEN_DTYPE_F32 = 4,
  FAGEN_DTYPE_U32 = 5,
  FAGEN_DTYPE_I32 = 6,
  FAGEN_DTYPE_U8 = 7,
  FAGEN_DTYPE_E5M2 = 8
};
/* fagen_problem.mask; 0 is none. Causal: query i sees keys j <= i + seq_kv - seq_q. */
enum { FAGEN_MASK_NONE = 1, FAGEN_MASK_CAUSAL = 2 };
/* fagen_problem.flags */
enum {
  FAGEN_FLAG_LSE = 1u << 0, /* LSE will be asked for: only rows that can write it fit */
  /* Programmatic dependent launch: kernels that can (schedules with pdl = 1) begin while the launch before them in the
   * stream ends, and wait for it. A small launch gains where that launch lets its successor begin, as such kernels of
   * fagen do, and loses a little where it does not (docs/Runtime.md). Others are launched as without. */
  FAGEN_FLAG_PDL = 1u << 1,
  /* Nothing of kv_heads, head_dim_v, the strides and those of args is absent: a 0 is the number 0. For callers that
   * have tensors rather than wishes: K of no heads, or expanded in every dimension, is then taken at its word. */
  FAGEN_FLAG_EXPLICIT = 1u << 2
};

/* fagen_arg.kind */
enum { FAGEN_ARG_I32 = 1, FAGEN_ARG_F32 = 2, FAGEN_ARG_TENSOR = 3 };

/* The value of one param of a form. */
typedef struct fagen_arg {
  const char *name;
  uint32_t kind;     /* as the form declares the param; a tensor's elements are those that it declares */
  uint32_t reserved; /* 0 */
  /* Of a scalar: the number in the member of its kind, within the param's range, or, with data, a tensor of one i32 or
   * f32 on the device, which kernels read at each launch: captured launches see what it holds when they are replayed.
   * Its value is not checked: it must lie in the param's range. */
  int64_t i32;
  double f32;
  /* Of a tensor: its elements on the device, aligned as one of them (a word of bits). NULL: fagen_tensors has them. */
  const void *data;
  /* Of a tensor: one for each of its extents, in elements, not negative; a 0 repeats it along that extent. All absent:
   * packed, the last extent dense. Bits lie in 32-bit words, low bit first: the last extent is dense and its stride 1,
   * the others are in words. Strides of extents of 0 or 1 are not used. FAGEN_FLAG_EXPLICIT: none are absent. */
  int64_t stride[4];
} fagen_arg;

/* What to compute. Append only; zero means absent. */
typedef struct fagen_problem {
  uint32_t struct_size, abi; /* fagen_problem_init sets both */
  uint32_t pass, dtype, mask, flags;
  /* kv_heads absent: heads. head_dim_v absent: head_dim_qk. Neither is with FAGEN_FLAG_EXPLICIT. An empty batch, heads
   * or seq_q is legal and launches nothing; seq_kv = 0 gives O = 0 and LSE = -inf. Each is at most 10^9. */
  int64_t batch, heads, kv_heads, seq_q, seq_kv, head_dim_qk, head_dim_v;
  /* Batch, head, row; in elements, not negative. All three absent: packed as shaped above, but with
   * FAGEN_FLAG_EXPLICIT. Dimensions of size 0 or 1 do not use theirs. A 0 repeats Q, K or V; rows of O and LSE must be
   * apart, by the rule of docs/Runtime.md. */
  int64_t q_stride[3], k_stride[3], v_stride[3], o_stride[3];
  int64_t lse_stride[2]; /* batch, head; rows are dense; both absent: packed */
  float scale;           /* used if has_scale is not 0; finite, not negative; 0 averages V. Else 1/sqrt(head_dim_qk) */
  uint32_t has_scale;
  uint32_t alignment;  /* of all base pointers, in bytes, a power of two; absent: 16 */
  const char *variant; /* NULL: dispatch decides; else only rows of this name are looked at */
  /* A form of the tables, by name: then mask is absent, and each param of the form is given once, in any order. Only
   * rows made for the form are looked at; those whose spec bound params to the very values given come before those that
   * take any. Where tables have several forms of one name, the first that takes these args is meant. NULL: mask says
   * what is seen, and there are no args. */
  const char *form;
  const fagen_arg *args;
  uint32_t arg_count;
  uint32_t
      kv_dtype; /* of K and V, whose strides count such elements: E4M3 or E5M2; absent, or dtype: that of Q and O */
} fagen_problem;

typedef struct fagen_table fagen_table;   /* <fagen/table.h>; each generated kernel set exports one */
typedef struct fagen_row fagen_row;       /* <fagen/table.h> */
typedef struct fagen_device fagen_device; /* a GPU, its context, and the kernels prepared on it */
struct CUstream_st;

/* The answer of fagen_query. It refers to its table and device, which must outlive it, and may be copied as bytes. One
 * choice serves any number of runs, at once from several threads too. */
typedef struct fagen_choice {
  uint32_t struct_size, abi; /* fagen_choice_init sets both */
  const fagen_table *table;
  const fagen_row *row;
  const fagen_device *device;
  size_t workspace_bytes;       /* what fagen_run needs; 0: none */
  uint32_t workspace_alignment; /* of the workspace pointer, bytes */
  uint32_t reserved;
  uint64_t state[64]; /* the library's */
  /* The last so many of workspace_bytes may hold anything before a run; those before, fagen_choice_zero_bytes, must be
   * zero, and are left so. Absent (of an older library, or of a table that does not say): all must be zero. */
  uint64_t scratch_bytes;
} fagen_choice;

/* How many leading bytes of the workspace must be zero. */
static inline size_t fagen_choice_zero_bytes(const fagen_choice *choice) {
  return choice->workspace_bytes - (size_t)choice->scratch_bytes;
}

/* Device pointers of one run. */
typedef struct fagen_tensors {
  uint32_t struct_size, abi; /* fagen_tensors_init sets both */
  const void *q, *k, *v;     /* k and v may be NULL when seq_kv is 0 */
  void *o;
  float *lse; /* NULL: not written */
  /* Tensors of the problem's form, and scalars on the device: of each arg name and data are read, the rest is as the
   * problem had it. Those that are not here have the data that the problem gave. */
  const fagen_arg *args;
  uint32_t arg_count, reserved; /* reserved: 0 */
} fagen_tensors;

/* ---- Devices ---- */

#define FAGEN_CURRENT_CONTEXT (-1)

/* Opens a GPU: by its CUDA ordinal, in its primary context (the one that the CUDA runtime and PyTorch use), or, with
 * FAGEN_CURRENT_CONTEXT, the calling thread's current context. CUDA: no driver, no such device, no current context. */
FAGEN_API fagen_status fagen_device_create(int ordinal, fagen_device **device);

/* A description of a GPU that need not exist, for fagen_query and fagen_explain: compute capability as major * 10 +
 * minor (89, 90, 120) and number of SMs. fagen_prepare on it compiles into the cache but loads nothing. */
FAGEN_API fagen_status fagen_device_describe(uint32_t compute_capability, uint32_t sm_count, fagen_device **device);

/* Unloads the kernels prepared on it. No launch of them may be in flight, and no graph may hold one. NULL is ignored.
 */
FAGEN_API void fagen_device_destroy(fagen_device *device);

/* Makes the device's context the current one of this thread. */
FAGEN_API fagen_status fagen_device_make_current(const fagen_device *device);

typedef struct fagen_device_info {
  uint32_t struct_size, abi;   /* fagen_device_info_init sets both */
  int32_t ordinal;             /* -1: a description only */
  uint32_t compute_capability; /* major * 10 + minor */
  uint32_t sm_count;
  uint32_t shared_bytes_per_block; /* the most a kernel may ask for */
  char name[128];
} fagen_device_info;

FAGEN_API fagen_status fagen_device_get_info(const fagen_device *device, fagen_device_info *info);

/* ---- Query, prepare, run ---- */

/* Picks the row of the tables that computes the problem on the device. Allocates nothing and takes well under a
 * microsecond. INVALID, UNSUPPORTED, MISALIGNED, ABI_MISMATCH. */
FAGEN_API fagen_status fagen_query(const fagen_table *const *tables, size_t table_count, const fagen_problem *problem,
                                   const fagen_device *device, fagen_choice *choice);

/* Makes the choice's kernels ready on its device: a linked binary for this GPU, else linked PTX, else NVRTC (cached on
 * disk). Once per row and device, under a lock; later calls return at once. COMPILE, CUDA, OUT_OF_MEMORY. */
FAGEN_API fagen_status fagen_prepare(const fagen_choice *choice, fagen_device *device);

/* Launches the choice's kernels on the stream. Never compiles, loads, allocates or waits, so it may be captured into a
 * graph: an unprepared choice is NOT_PREPARED, captured or not. The device's context must be current and be the
 * stream's. The workspace is the caller's: workspace_bytes, of which the first fagen_choice_zero_bytes are zero; a
 * launch leaves these zero, and one that is not instrumented (docs/Breakdown.md) all that was; one for each in flight,
 * as fagen_lend_workspace gives them.
 * INVALID, MISALIGNED (by fagen_problem.alignment), WORKSPACE, CUDA. */
FAGEN_API fagen_status fagen_run(const fagen_choice *choice, const fagen_tensors *tensors, void *workspace,
                                 size_t workspace_bytes, struct CUstream_st *stream);

/* ---- Programs: kernels that are not attention (docs/Programs.md) ---- */

#define FAGEN_MAX_RANK 5 /* of a program's tensor */

/* A tensor of a program, by the name that its parameter has. */
typedef struct fagen_named_tensor {
  const char *name;
  void *data;                     /* on the device; not read by fagen_query_program. May be NULL where an extent is 0 */
  uint32_t dtype;                 /* FAGEN_DTYPE_... */
  uint32_t rank;                  /* 0: fagen_query_program fills in dtype, rank, extents and dense strides */
  int64_t extent[FAGEN_MAX_RANK]; /* elements, the slowest dimension first; at most 10^9 each */
  int64_t stride[FAGEN_MAX_RANK]; /* elements, not negative; all absent: dense. Extents of 0 or 1 do not use theirs */
} fagen_named_tensor;

/* A size that follows from no tensor, or a param. */
typedef struct fagen_named_number {
  const char *name;
  uint32_t kind;     /* FAGEN_ARG_I32 or FAGEN_ARG_F32, as the program declares it; a size is i32 */
  uint32_t reserved; /* 0 */
  int64_t i32;
  double f32;
} fagen_named_number;

/* What a program is called with: each of its tensors once, and numbers, in any order. */
typedef struct fagen_call {
  uint32_t struct_size, abi; /* fagen_call_init sets both */
  const char *program;       /* its name in the tables; NULL for fagen_run_program: the choice's */
  fagen_named_tensor *tensors;
  const fagen_named_number *numbers;
  uint32_t tensor_count, number_count;
  uint32_t flags;    /* FAGEN_FLAG_PDL */
  uint32_t reserved; /* 0 */
} fagen_call;

/* Finds the program's row of the target that is nearest to the device, and checks the call: names, types, ranks; sizes
 * as they follow from extents, which must agree; strides and tensor maps. Fills in tensors of rank 0, and the choice,
 * which fagen_prepare and fagen_lend_workspace take as any other. Allocates nothing. INVALID, UNSUPPORTED, MISALIGNED,
 * ABI_MISMATCH. */
FAGEN_API fagen_status fagen_query_program(const fagen_table *const *tables, size_t table_count, const fagen_call *call,
                                           const fagen_device *device, fagen_choice *choice);

/* Checks the call as fagen_query_program does, then launches the program's kernels one after the other. Other extents
 * and numbers than those of the query are taken, with the workspace that they need. As fagen_run it never compiles,
 * loads, allocates or waits. INVALID, UNSUPPORTED, MISALIGNED, WORKSPACE, NOT_PREPARED, CUDA. */
FAGEN_API fagen_status fagen_run_program(const fagen_choice *choice, const fagen_call *call, void *workspace,
                                         size_t workspace_bytes, struct CUstream_st *stream);

/* ---- Workspaces of the library ---- */

/* A workspace for one launch of the choice on the stream, zeroed as fagen_run wants it; NULL where the choice needs
 * none. Launches of a stream share one, one after the other. A launch that the stream captures into a graph gets a slot
 * of its own, which no other launch ever gets: graphs may run at once. The device keeps all of it until
 * fagen_device_destroy. Allocates where it has too little, also under capture. The device's context must be current and
 * be the stream's; a stream must outlive its launches. INVALID, CUDA, OUT_OF_MEMORY. */
FAGEN_API fagen_status fagen_lend_workspace(const fagen_choice *choice, fagen_device *device,
                                            struct CUstream_st *stream, void **workspace);

/* ---- Words ---- */

typedef struct fagen_choice_info {
  uint32_t struct_size, abi; /* fagen_choice_info_init sets both */
  const char *variant;       /* of the row */
  const char *target;        /* "sm_89" */
  const char *symbol;        /* of the first launch */
  const char *origin;        /* "cubin", "ptx", "nvrtc", "cache"; NULL before fagen_prepare */
  uint64_t grid;             /* CTAs of the first launch */
  uint32_t threads;          /* per CTA */
  uint32_t shared_bytes;     /* dynamic, per CTA */
  int32_t registers;         /* per thread; -1 before fagen_prepare and on a described device */
  int32_t local_bytes;       /* per thread (spills, stack); -1 likewise */
} fagen_choice_info;

FAGEN_API fagen_status fagen_choice_get_info(const fagen_choice *choice, fagen_choice_info *info);

/* Says which row fagen_query picks and why, why not each other row of the same kind, and, when none fits, the nearest.
 * Writes at most size bytes, always terminated when size > 0; returns the length of the whole text. */
FAGEN_API size_t fagen_explain(const fagen_table *const *tables, size_t table_count, const fagen_problem *problem,
                               const fagen_device *device, char *text, size_t size);

/* Why the last failed call of this thread failed; "" if none has. Valid until the thread's next failing call. */
FAGEN_API const char *fagen_last_error(void);

/* "OK", "INVALID", ...; "unknown status" for anything else. */
FAGEN_API const char *fagen_status_name(fagen_status status);

/* ---- Initialisers: everything absent, struct_size and abi set ---- */

#ifdef __cplusplus
#define FAGEN_ABSENT                                                                                                   \
  {                                                                                                                    \
  }
#else
#define FAGEN_ABSENT {0}
#endif
#define FAGEN_DEFINE_INIT(type)                                                                                        \
  static inline type type##_init(void) {                                                                               \
    type value = FAGEN_ABSENT;                                                                                         \
    value.struct_size = (uint32_t)sizeof(value);                                                                       \
    value.abi = FAGEN_ABI;                                                                                             \
    return value;                                                                                                      \
  }
FAGEN_DEFINE_INIT(fagen_problem)
FAGEN_DEFINE_INIT(fagen_choice)
FAGEN_DEFINE_INIT(fagen_tensors)
FAGEN_DEFINE_INIT(fagen_device_info)
FAGEN_DEFINE_INIT(fagen_choice_info)
FAGEN_DEFINE_INIT(fagen_call)
#undef FAGEN_DEFINE_INIT
#undef FAGEN_ABSENT

#ifdef __cplusplus
}
#endif
#endif

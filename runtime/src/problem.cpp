// fagen: checks a caller's problem and fills in its defaults.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "problem.h"

#include "error.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <iterator>

namespace fagen {
namespace {

constexpr int64_t kMaxHeadDim = 4095; // 12 bits of the key
constexpr uint32_t kDefaultAlignment = 16;
constexpr int64_t kMaxBytes = int64_t(1) << 52; // of a tensor, gaps included: offsets of tiles after its end fit too
constexpr double kLog2E = 1.4426950408889634074;

uint32_t elementBytes(uint32_t dtype) { return dtype == FAGEN_DTYPE_E4M3 || dtype == FAGEN_DTYPE_E5M2 ? 1 : 2; }

/// What joins the key's dtype; 0 where K and V have Q's elements, and for what they may not have.
uint32_t kvBits(uint32_t kvDtype) {
  return kvDtype == FAGEN_DTYPE_E4M3 ? FAGEN_KV_E4M3 : kvDtype == FAGEN_DTYPE_E5M2 ? FAGEN_KV_E5M2 : 0;
}

/// The caller's struct in this library's size: fields that it does not know are absent.
fagen_status copyGiven(const fagen_problem *given, fagen_problem &copy) {
  if (fagen_status status = checkStruct(given, "fagen_problem"))
    return status;
  const char *bytes = reinterpret_cast<const char *>(given);
  if (given->struct_size == sizeof(copy)) {
    copy = *given;
    return FAGEN_OK;
  }
  for (uint32_t i = sizeof(copy); i < given->struct_size; ++i)
    if (bytes[i] != 0)
      return fail(FAGEN_UNSUPPORTED,
                  "fagen_problem has %u bytes and sets a field beyond the %zu that this library knows",
                  given->struct_size, sizeof(copy));
  copy = {};
  memcpy(&copy, given, std::min<size_t>(given->struct_size, sizeof(copy)));
  return FAGEN_OK;
}

/// That a form stands in the place of a mask, and args with a form.
fagen_status checkForm(const fagen_problem &p) {
  if (p.form && p.mask)
    return fail(FAGEN_INVALID, "form is '%s' and mask is %u (%s); a form says what is seen: leave mask 0", p.form,
                p.mask, maskName(p.mask));
  if (!p.form && p.arg_count)
    return fail(FAGEN_INVALID, "arg_count is %u without a form; name it in form", p.arg_count);
  if (p.arg_count && !p.args)
    return fail(FAGEN_INVALID, "args is NULL and arg_count is %u", p.arg_count);
  return FAGEN_OK;
}

fagen_status fillDefaults(fagen_problem &p) {
  if (p.pass == 0)
    p.pass = FAGEN_PASS_FORWARD;
  if (fagen_status status = checkForm(p))
    return status;
  if (p.mask == 0 && !p.form)
    p.mask = FAGEN_MASK_NONE;
  const bool isExplicit = p.flags & FAGEN_FLAG_EXPLICIT;
  if (p.kv_heads == 0 && !isExplicit)
    p.kv_heads = p.heads;
  if (p.head_dim_v == 0 && !isExplicit)
    p.head_dim_v = p.head_dim_qk;
  if (p.alignment == 0)
    p.alignment = kDefaultAlignment;
  if (p.pass > FAGEN_PASS_BACKWARD)
    return fail(FAGEN_INVALID, "pass %u is unknown; it is 1 (forward) or 2 (backward)", p.pass);
  if (p.dtype == 0 || p.dtype > FAGEN_DTYPE_E4M3)
    return fail(FAGEN_INVALID, "dtype %u is unknown; it is 1 (f16), 2 (bf16) or 3 (e4m3)", p.dtype);
  if (p.kv_dtype == p.dtype)
    p.kv_dtype = 0;
  if (p.kv_dtype && (p.dtype == FAGEN_DTYPE_E4M3 || !kvBits(p.kv_dtype)))
    return fail(
        FAGEN_INVALID,
        "kv_dtype is %u and dtype %u; K and V have Q's elements, or next to f16 (1) and bf16 (2) those of e4m3 (3) "
        "or e5m2 (8)",
        p.kv_dtype, p.dtype);
  if (p.mask > FAGEN_MASK_CAUSAL)
    return fail(FAGEN_INVALID, "mask %u is unknown; it is 1 (none) or 2 (causal)", p.mask);
  if (p.flags & ~(FAGEN_FLAG_LSE | FAGEN_FLAG_PDL | FAGEN_FLAG_EXPLICIT))
    return fail(FAGEN_INVALID,
                "flags 0x%x has unknown bits; known are FAGEN_FLAG_LSE (0x1), FAGEN_FLAG_PDL (0x2) and "
                "FAGEN_FLAG_EXPLICIT (0x4)",
                p.flags);
  if (p.alignment & (p.alignment - 1))
    return fail(FAGEN_INVALID, "alignment %u is not a power of two", p.alignment);
  return FAGEN_OK;
}

fagen_status checkSizes(const fagen_problem &p) {
  const struct {
    const char *name;
    int64_t value;
  } sizes[] = {{"batch", p.batch},          {"heads", p.heads},   {"kv_heads", p.kv_heads},
               {"seq_q", p.seq_q},          {"seq_kv", p.seq_kv}, {"head_dim_qk", p.head_dim_qk},
               {"head_dim_v", p.head_dim_v}};
  for (const auto &size : sizes) {
    if (size.value < 0)
      return fail(FAGEN_INVALID, "%s is %lld; it must not be negative", size.name, (long long)size.value);
    if (size.value > kMaxCount)
      return fail(FAGEN_UNSUPPORTED, "%s is %lld; at most %lld is supported", size.name, (long long)size.value,
                  (long long)kMaxCount);
  }
  if (p.head_dim_qk == 0)
    return fail(FAGEN_INVALID, "head_dim_qk is 0; it must be given");
  if (p.head_dim_v == 0)
    return fail(FAGEN_UNSUPPORTED, "head_dim_v is 0: V and O have no columns");
  if (std::max(p.head_dim_qk, p.head_dim_v) > kMaxHeadDim)
    return fail(FAGEN_UNSUPPORTED, "head_dim %lld : %lld; at most %lld is supported", (long long)p.head_dim_qk,
                (long long)p.head_dim_v, (long long)kMaxHeadDim);
  if (p.heads == 0 && p.kv_heads != 0)
    return fail(FAGEN_INVALID, "kv_heads is %lld with heads 0", (long long)p.kv_heads);
  if (p.heads != 0 && p.kv_heads == 0)
    return fail(FAGEN_INVALID, "kv_heads is 0 with heads %lld", (long long)p.heads);
  if (p.heads != 0 &&
      int(p.heads) % int(p.kv_heads) != 0) // in 32 bits: a 64-bit division is the slowest step of a query
    return fail(FAGEN_INVALID, "kv_heads %lld does not divide heads %lld", (long long)p.kv_heads, (long long)p.heads);
  return FAGEN_OK;
}

/// Reads strides one tensor at a time: packs absent ones, drops those of dimensions that have one index, and collects
/// the alignment of the others.
class StrideReader {
public:
  StrideReader(uint32_t alignment, bool isExplicit) : bits(alignment), isExplicit(isExplicit) {}

  /// `sizes` are batch, heads, rows and columns. Rows of an output must not overlap.
  fagen_status read(const char *name, int64_t bytes, const int64_t (&given)[3], const int64_t (&sizes)[4], bool output,
                    long long (&stride)[3]) {
    elementBytes = bytes;
    if (!isExplicit && !given[0] && !given[1] && !given[2])
      return pack(name, sizes, stride);
    int64_t extent = sizes[3];
    for (int i = 2; i >= 0; --i) {
      if (sizes[i] <= 1) {
        stride[i] = 0;
        continue;
      }
      if (given[i] < 0)
        return fail(FAGEN_INVALID, "%s_stride[%d] is %lld; it must not be negative", name, i, (long long)given[i]);
      int64_t reach;
      if (__builtin_mul_overflow(given[i], sizes[i] - 1, &reach) || __builtin_add_overflow(extent, reach, &extent))
        return overflow(name);
      use(stride[i] = given[i]);
    }
    if (fagen_status status = checkExtent(name, extent))
      return status;
    return output ? checkApart(name, sizes, stride) : FAGEN_OK;
  }

  uint32_t commonAlignment() const { return uint32_t(bits & (~bits + 1)); }

private:
  fagen_status pack(const char *name, const int64_t (&sizes)[4], long long (&stride)[3]) {
    int64_t next = sizes[3];
    for (int i = 2; i >= 0; --i) {
      stride[i] = sizes[i] <= 1 ? 0 : next;
      use(stride[i]);
      if (__builtin_mul_overflow(next, std::max<int64_t>(sizes[i], 1), &next))
        return overflow(name);
    }
    return checkExtent(name, next);
  }

  fagen_status checkExtent(const char *name, int64_t extent) {
    return extent > kMaxBytes / elementBytes ? overflow(name) : FAGEN_OK;
  }

  static fagen_status overflow(const char *name) {
    return fail(FAGEN_INVALID, "the strides of %s reach beyond 2^52 bytes", name);
  }

  /// Whether rows are apart: from the smallest stride on, each is at least as long as what the smaller ones reach.
  /// Layouts that interleave otherwise, and yet keep rows apart, are refused too: to tell them from others is a search.
  static fagen_status checkApart(const char *name, const int64_t (&sizes)[4], const long long (&stride)[3]) {
    if (!sizes[0] || !sizes[1] || !sizes[2])
      return FAGEN_OK; // has no rows
    int order[3] = {2, 1, 0};
    std::sort(order, order + 3, [&](int a, int b) { return stride[a] != stride[b] ? stride[a] < stride[b] : a > b; });
    int64_t reach = sizes[3];
    for (int i : order) {
      if (sizes[i] <= 1)
        continue;
      if (stride[i] < reach)
        return fail(FAGEN_INVALID, "%s_stride[%d] is %lld: rows would overlap; at least %lld keeps them apart", name, i,
                    stride[i], (long long)reach);
      reach += stride[i] * (sizes[i] - 1);
    }
    return FAGEN_OK;
  }

  void use(int64_t stride) { bits |= uint64_t(stride) * uint64_t(elementBytes); }

  int64_t elementBytes = 0; // of the tensor that is read
  uint64_t bits;   // of all strides in bytes and the base alignment together: the lowest one set is what they share
  bool isExplicit; // none are absent
};

fagen_status readStrides(const fagen_problem &p, Problem &problem) {
  device::AttentionParams &params = problem.params;
  const bool isExplicit = p.flags & FAGEN_FLAG_EXPLICIT;
  StrideReader reader(p.alignment, isExplicit);
  const int64_t ofQ = elementBytes(p.dtype), ofK = elementBytes(p.kv_dtype ? p.kv_dtype : p.dtype);
  const int64_t q[4] = {p.batch, p.heads, p.seq_q, p.head_dim_qk};
  const int64_t k[4] = {p.batch, p.kv_heads, p.seq_kv, p.head_dim_qk};
  const int64_t v[4] = {p.batch, p.kv_heads, p.seq_kv, p.head_dim_v};
  const int64_t o[4] = {p.batch, p.heads, p.seq_q, p.head_dim_v};
  fagen_status status = reader.read("q", ofQ, p.q_stride, q, false, params.q_stride);
  status = status ? status : reader.read("k", ofK, p.k_stride, k, false, params.k_stride);
  status = status ? status : reader.read("v", ofK, p.v_stride, v, false, params.v_stride);
  status = status ? status : reader.read("o", ofQ, p.o_stride, o, true, params.o_stride);
  if (status)
    return status;
  problem.alignment = p.alignment;
  problem.commonAlignment = reader.commonAlignment();

  // LSE as a tensor of one column whose rows are dense; scalar stores need no more than the alignment of float.
  StrideReader lseReader(alignof(float), isExplicit);
  const bool packed = !isExplicit && p.lse_stride[0] == 0 && p.lse_stride[1] == 0;
  const int64_t lseGiven[3] = {p.lse_stride[0], p.lse_stride[1], packed ? 0 : 1};
  const int64_t lseSizes[4] = {p.batch, p.heads, p.seq_q, 1};
  long long lseStride[3];
  if ((status = lseReader.read("lse", sizeof(float), lseGiven, lseSizes, true, lseStride)))
    return status;
  params.lse_stride[0] = lseStride[0];
  params.lse_stride[1] = lseStride[1];
  return FAGEN_OK;
}

fagen_status readScale(const fagen_problem &p, device::AttentionParams &params) {
  if (p.has_scale && !(p.scale >= 0 && std::isfinite(p.scale)))
    return fail(FAGEN_INVALID, "scale is %g; it must be finite and not negative", double(p.scale));
  double scale = p.has_scale ? double(p.scale) : 1 / std::sqrt(double(p.head_dim_qk));
  if (scale * kLog2E > FLT_MAX)
    return fail(FAGEN_INVALID, "scale is %g; scale * log2(e) must fit a float", scale);
  params.scale = float(scale);
  // Never 0: a masked score of -inf times 0 would be NaN; the smallest normal float gives the same uniform average.
  params.scale_log2 = std::max(float(scale * kLog2E), FLT_MIN);
  return FAGEN_OK;
}

} // namespace

fagen_status readProblem(const fagen_problem *given, Problem &problem) {
  fagen_problem p;
  fagen_status status = copyGiven(given, p);
  status = status ? status : fillDefaults(p);
  status = status ? status : checkSizes(p);
  status = status ? status : readStrides(p, problem);
  status = status ? status : readScale(p, problem.params);
  if (status)
    return status;

  device::AttentionParams &params = problem.params;
  params.batch = int(p.batch);
  params.heads = int(p.heads);
  params.kv_heads = int(p.kv_heads);
  params.heads_per_kv = p.kv_heads ? params.heads / params.kv_heads : 1;
  params.by_heads_per_kv = device::make_divisor(params.heads_per_kv);
  params.seq_q = int(p.seq_q);
  params.seq_kv = int(p.seq_kv);

  int64_t *values = problem.variables.values;
  values[FAGEN_VAR_BATCH] = p.batch;
  values[FAGEN_VAR_HEADS] = p.heads;
  values[FAGEN_VAR_KV_HEADS] = p.kv_heads;
  values[FAGEN_VAR_SEQ_Q] = p.seq_q;
  values[FAGEN_VAR_SEQ_KV] = p.seq_kv;
  values[FAGEN_VAR_HEAD_DIM_QK] = p.head_dim_qk;
  values[FAGEN_VAR_HEAD_DIM_V] = p.head_dim_v;
  values[FAGEN_VAR_DTYPE] = p.dtype;
  values[FAGEN_VAR_MASK] = p.mask;

  problem.key =
      fagen_problem_key(p.pass, p.dtype | kvBits(p.kv_dtype), p.mask, uint64_t(p.head_dim_qk), uint64_t(p.head_dim_v));
  problem.lse = p.flags & FAGEN_FLAG_LSE;
  problem.overlapsLaunches = p.flags & FAGEN_FLAG_PDL;
  problem.variant = p.variant;
  problem.form.name = p.form;
  problem.form.given = {p.args, p.arg_count};
  problem.form.areExplicit = p.flags & FAGEN_FLAG_EXPLICIT;
  return FAGEN_OK;
}

const char *passName(uint32_t pass) {
  return pass == FAGEN_PASS_FORWARD ? "forward" : pass == FAGEN_PASS_BACKWARD ? "backward" : "?";
}

const char *dtypeName(uint32_t dtype) {
  const char *const names[] = {"?",
                               "f16",
                               "bf16",
                               "e4m3",
                               "?",
                               "f16 (K and V e4m3)",
                               "bf16 (K and V e4m3)",
                               "?",
                               "?",
                               "f16 (K and V e5m2)",
                               "bf16 (K and V e5m2)"};
  return dtype < std::size(names) ? names[dtype] : "?";
}

const char *maskName(uint32_t mask) {
  return mask == FAGEN_MASK_NONE ? "none" : mask == FAGEN_MASK_CAUSAL ? "causal" : "?";
}

} // namespace fagen

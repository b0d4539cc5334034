// fagen: the reason of a thread's last failure, and the names of statuses.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "error.h"

#include <cstdarg>
#include <cstdio>

namespace {
thread_local char lastError[4096] = "";
} // namespace

fagen_status fagen::fail(fagen_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(lastError, sizeof(lastError), format, arguments);
  va_end(arguments);
  return status;
}

const char *fagen_last_error(void) { return lastError; }

const char *fagen_status_name(fagen_status status) {
  switch (status) {
  case FAGEN_OK:
    return "OK";
  case FAGEN_INVALID:
    return "INVALID";
  case FAGEN_UNSUPPORTED:
    return "UNSUPPORTED";
  case FAGEN_MISALIGNED:
    return "MISALIGNED";
  case FAGEN_WORKSPACE:
    return "WORKSPACE";
  case FAGEN_NOT_PREPARED:
    return "NOT_PREPARED";
  case FAGEN_COMPILE:
    return "COMPILE";
  case FAGEN_CUDA:
    return "CUDA";
  case FAGEN_ABI_MISMATCH:
    return "ABI_MISMATCH";
  case FAGEN_OUT_OF_MEMORY:
    return "OUT_OF_MEMORY";
  default:
    return "unknown status";
  }
}

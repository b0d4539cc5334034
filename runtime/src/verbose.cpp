// fagen: lines on standard error about what is loaded and compiled, when FAGEN_VERBOSE is set.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "verbose.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

void fagen::verbose(const char *format, ...) {
  const char *wanted = getenv("FAGEN_VERBOSE");
  if (!wanted || !*wanted || *wanted == '0')
    return;
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  fprintf(stderr, "fagen: %s\n", line);
}

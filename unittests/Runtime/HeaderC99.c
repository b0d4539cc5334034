/* fagen: proves that the public headers are C99, and that their functions link from C.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <fagen/fagen.h>
#include <fagen/table.h>

int fagen_c99_smoke(void) {
  fagen_problem problem = fagen_problem_init();
  fagen_choice choice = fagen_choice_init();
  return fagen_query(NULL, 0, &problem, NULL, &choice);
}

/* fagen: what lets a binary that is linked here run with glibc 2.28, whatever glibc is here.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A linker takes the newest version of each symbol, and the objects of libstdc++.a call what their glibc has. These
 * names are of the binary alone, and come before glibc's: here those that an older glibc lacks, in OldSymbols.S those
 * that it has under another version. x86-64: the kernel's struct stat is glibc's. test/Package/old-glibc.test holds
 * both files to their purpose. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#pragma GCC visibility push(hidden)

/* 2.32: 0 is always right, and costs an atomic instruction. */
char __libc_single_threaded = 0;

/* 2.33: before, these were macros. */
int stat(const char *path, struct stat *result) { return (int)syscall(SYS_newfstatat, AT_FDCWD, path, result, 0); }
int lstat(const char *path, struct stat *result) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, result, AT_SYMLINK_NOFOLLOW);
}
int fstat(int file, struct stat *result) { return (int)syscall(SYS_fstat, file, result); }
int fstatat(int file, const char *path, struct stat *result, int flags) {
  return (int)syscall(SYS_newfstatat, file, path, result, flags);
}
int stat64(const char *path, struct stat64 *result) { return stat(path, (struct stat *)result); }
int lstat64(const char *path, struct stat64 *result) { return lstat(path, (struct stat *)result); }
int fstat64(int file, struct stat64 *result) { return fstat(file, (struct stat *)result); }

/* 2.36: of std::random_device. */
uint32_t arc4random(void) {
  uint32_t value;
  if (getrandom(&value, sizeof(value), 0) != sizeof(value))
    abort();
  return value;
}

/* 2.34: what starts a program no longer runs its constructors by a function of the program. One that asks for the older
 * function brings this. */
typedef void (*Constructor)(int, char **, char **);
extern Constructor __preinit_array_start[], __preinit_array_end[], __init_array_start[], __init_array_end[];
extern void _init(void);

static void construct(int count, char **arguments, char **environment) {
  for (Constructor *each = __preinit_array_start; each != __preinit_array_end; ++each)
    (*each)(count, arguments, environment);
  _init();
  for (Constructor *each = __init_array_start; each != __init_array_end; ++each)
    (*each)(count, arguments, environment);
}

typedef int Main(int, char **, char **);
/* glibc's, of OldSymbols.S. */
int fagen_start(Main *main, int count, char **arguments, Constructor init, void (*fini)(void), void (*finish)(void),
                void *stack);

int __libc_start_main(Main *main, int count, char **arguments, Constructor init, void (*fini)(void),
                      void (*finish)(void), void *stack) {
  return fagen_start(main, count, arguments, init ? init : construct, fini, finish, stack);
}

/* fagen: functions that glibc 2.29 to 2.34 gave a new version, by their old one; see OldGlibc.c.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Each is a name of this binary alone that goes on to glibc's function: the objects of static libraries call it, too. Those
 * of libpthread and libdl moved to libc in 2.34; an older glibc has them in libpthread.so.0 and libdl.so.2, which a later
 * one still brings, so the binary asks for both. A section each: what nothing calls is left out (--gc-sections). */
.macro name own, theirs, version
        .symver fagen_old_\theirs, \theirs@GLIBC_\version
        .section .text.\own, "ax", @progbits
        .globl \own
        .hidden \own
        .type \own, @function
\own:
        .cfi_startproc
        endbr64
        jmp *fagen_old_\theirs@GOTPCREL(%rip)
        .cfi_endproc
        .size \own, . - \own
.endm
.macro old function, version=2.2.5
        name \function, \function, \version
.endm

        name fagen_start, __libc_start_main, 2.2.5

        old exp
        old exp2
        old log
        old log2
        old pow

        old dladdr
        old dlclose
        old dlerror
        old dlopen
        old dlsym

        old __pthread_key_create
        old pthread_attr_setstacksize
        old pthread_create
        old pthread_detach
        old pthread_getname_np, 2.12
        old pthread_getspecific
        old pthread_join
        old pthread_key_create
        old pthread_key_delete
        old pthread_mutex_trylock
        old pthread_mutexattr_destroy
        old pthread_mutexattr_init
        old pthread_mutexattr_settype
        old pthread_once
        old pthread_rwlock_rdlock
        old pthread_rwlock_unlock
        old pthread_rwlock_wrlock
        old pthread_setname_np, 2.12
        old pthread_setspecific
        old pthread_sigmask

        .section .note.GNU-stack, "", @progbits

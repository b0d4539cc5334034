# fagen: programs of kernel sets on the emulator, for tests.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import ctypes
import os

import fagen


def emulate(library, gpu):
    """For set_emulator: launches a program by a library with the emulator, as a GPU of this compute capability: 90."""
    def run(kernels, call):
        emulated, error = ctypes.CDLL(library), ctypes.create_string_buffer(2048)
        for directory in kernels._directories:
            if emulated.fagen_torch_emulate_program(os.fsencode(directory), gpu, ctypes.byref(call), error, 2048):
                raise fagen.Error(error.value.decode())
    return run

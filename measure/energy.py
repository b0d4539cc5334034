# fagen: how much energy a load takes, by the counter of NVIDIA's management library (NVML).
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NVML counts the energy of the whole GPU in mJ since the driver was loaded, idle power and memory included. The counter steps
every 20 to 100 ms, so two readings of it may be a step apart from the moments they are taken at. A thread polls it while the
load runs, and only steps that it saw count: the energy between the first of them, SETTLE_S after the load began, and the last,
over the time between them. `error` is what the moments of these two steps may be wrong by, as a share of that time; the
sensor's own accuracy, which NVIDIA states nowhere, is not in it. As lab/device/energy_meter.h has it."""
import ctypes
import threading
import time

LIBRARY = "libnvidia-ml.so.1"
POLL_S = 0.001
SETTLE_S = 0.15  # what the counter tells of later may still be of what ran before
LEAST_S = 0.5    # between the two steps


class Nvml:
    """Sensors of the GPU at a bus address, or of the first one; None for what NVML does not tell. `missing` is why it tells
    no energy, or None."""

    def __init__(self, address=None, library=LIBRARY):
        self.device, self.missing = ctypes.c_void_p(), None
        try:
            self.lib = ctypes.CDLL(library)
        except OSError as error:
            self.lib, self.missing = None, f"NVML is not here: {error}"
            return
        if self.lib.nvmlInit_v2() or not self.find(address):
            self.lib, self.missing = None, f"NVML ({library}) finds no GPU"
        elif self.joules() is None:
            self.missing = f"NVML ({library}) tells no energy of this GPU"

    def find(self, address):
        by_bus, by_index = self.lib.nvmlDeviceGetHandleByPciBusId_v2, self.lib.nvmlDeviceGetHandleByIndex_v2
        return (address and by_bus(address.encode(), ctypes.byref(self.device)) == 0) or by_index(0, ctypes.byref(self.device)) == 0

    def ask(self, name, value, *arguments, scale=1):
        if self.lib is None or not hasattr(self.lib, name) or getattr(self.lib, name)(self.device, *arguments, ctypes.byref(value)):
            return None
        return value.value * scale

    def joules(self):
        return self.ask("nvmlDeviceGetTotalEnergyConsumption", ctypes.c_ulonglong(), scale=1e-3)

    def read(self):
        return dict(sm_clock_mhz=self.ask("nvmlDeviceGetClockInfo", ctypes.c_uint(), ctypes.c_int(1)),
                    watts=self.ask("nvmlDeviceGetPowerUsage", ctypes.c_uint(), scale=1e-3),
                    celsius=self.ask("nvmlDeviceGetTemperature", ctypes.c_uint(), ctypes.c_int(0)))


class Steps:
    """Polls of a counter, and the energy between its steps."""

    def __init__(self, begin):
        self.begin, self.last, self.steps = begin, None, []

    def poll(self, began, ended, joules):
        """A poll that took from `began` to `ended`, in seconds, and read `joules`."""
        if self.last is not None and joules != self.last[1]:
            before = self.last[0]
            self.steps.append(((before + ended) / 2, joules, (ended - before) / 2))
        self.last = began, joules

    def energy(self):
        """{joules, seconds, watts, error} between the ends, or why there is none."""
        steps = [step for step in self.steps if step[0] >= self.begin + SETTLE_S]
        seconds = steps[-1][0] - steps[0][0] if steps else 0
        if seconds < LEAST_S:
            return f"the counter's steps within the load are {seconds:.2f} s apart; {LEAST_S} are needed"
        (first, before, early), (_, after, late) = steps[0], steps[-1]
        return dict(joules=after - before, seconds=seconds, watts=(after - before) / seconds, error=(early + late) / seconds)


class Meter:
    """with Meter(nvml) as meter: the load. Then meter.energy is as Steps.energy() says."""

    def __init__(self, nvml):
        self.nvml, self.energy = nvml, nvml.missing

    def __enter__(self):
        if not self.nvml.missing:
            self.steps, self.ended = Steps(time.monotonic()), threading.Event()
            self.thread = threading.Thread(target=self.watch, daemon=True)
            self.thread.start()
        return self

    def watch(self):
        while not self.ended.wait(POLL_S):
            began = time.monotonic()
            if (joules := self.nvml.joules()) is not None:
                self.steps.poll(began, time.monotonic(), joules)

    def __exit__(self, *_):
        if not self.nvml.missing:
            self.ended.set()
            self.thread.join()
            self.energy = self.steps.energy()

// fagen: a libnvidia-ml for tests: a GPU that draws FAKE_WATTS, whose energy counter steps every FAKE_STEP_MS.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <math.h>
#include <stdlib.h>
#include <time.h>

static double number(const char *name, double otherwise) {
  const char *text = getenv(name);
  return text ? atof(text) : otherwise;
}

int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **device) {
  (void)address;
  *device = (void *)1;
  return number("FAKE_GPUS", 1) < 1;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
  *device = (void *)1;
  return index >= number("FAKE_GPUS", 1);
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) {
  (void)device;
  *milliwatts = (unsigned)(number("FAKE_WATTS", 500) * 1e3);
  return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules) {
  (void)device;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const double step = number("FAKE_STEP_MS", 20) / 1e3;
  const double seconds = floor(((double)now.tv_sec + now.tv_nsec / 1e9) / step) * step;
  *millijoules = (unsigned long long)(seconds * number("FAKE_WATTS", 500) * 1e3);
  return getenv("FAKE_NO_ENERGY") ? 3 : 0; // NVML_ERROR_NOT_SUPPORTED
}

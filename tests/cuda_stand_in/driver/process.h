// This process as the driver knows it: initialised or not, forked since or not, and its current device.
#pragma once

#include <cstdint>

#include "cards.h"

namespace stand_in {

// cuInit: 0, or the CUDA error. A process forked from an initialised one gets cudaErrorInitializationError for good.
int initialise();

// Initialised, with a context on the current device: 0, or the CUDA error.
int use_context();

int device_count();
int current_device();
int set_device(int device);  // makes its context, as CUDA 12 and later do
Unit unit_of_device(int device);
Unit current_unit();
bool device_has_context(int device);

// Work on the device: each kernel takes STAND_IN_KERNEL_MICROSECONDS of it, longer at a lower clock; waiting waits for all.
void queue_kernel();
void wait_for_kernels();

}  // namespace stand_in

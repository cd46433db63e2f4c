// What the files of the made-up libcudart share.
#pragma once

#include <cuda_runtime_api.h>

#include "calls.h"
#include "process.h"

namespace stand_in {

extern thread_local cudaError_t last_error;

// The error to return, kept for cudaGetLastError where it is one.
inline cudaError_t told(int error) {
  if (error) last_error = static_cast<cudaError_t>(error);
  return static_cast<cudaError_t>(error);
}

}  // namespace stand_in

// The first line of a runtime function: it may refuse by STAND_IN_FAIL, and what it refuses with is kept.
#define RUNTIME_ENTRY_POINT()                                                        \
  do {                                                                               \
    if (const int refusal = stand_in::stand_in_refusal(__func__)) return stand_in::told(refusal); \
  } while (false)

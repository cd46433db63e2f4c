// libcudnn: handles, descriptors, versions, and the sizes batch normalisation asks for.
#include <cstdint>
#include <cstdlib>

#include "calls.h"
#include "knobs.h"
#include "process.h"

using namespace stand_in;

namespace {

constexpr int not_initialized = 1001;

int made_handle(void** handle) {
  static char handles[1 << 16];
  static unsigned next = 0;
  *handle = handles + next++ % sizeof handles;
  return 0;
}

int version() { return static_cast<int>(knob_number("STAND_IN_CUDNN", 92000)); }

}  // namespace

extern "C" {

size_t cudnnGetVersion() { return static_cast<size_t>(version()); }
size_t cudnnGetCudartVersion() { return 13000; }

int cudnnGetProperty(int part, int* value) {
  const int parts[] = {version() / 10000, version() / 100 % 100, version() % 100};
  *value = parts[part];
  return 0;
}

int cudnnCreate(void** handle) {
  ENTRY_POINT(int);
  return use_context() ? not_initialized : made_handle(handle);
}

const char* cudnnGetErrorString(int status) {
  switch (status) {
    case 0: return "CUDNN_STATUS_SUCCESS";
    case 1001: return "CUDNN_STATUS_NOT_INITIALIZED";
    case 2000: return "CUDNN_STATUS_BAD_PARAM";
    case 3000: return "CUDNN_STATUS_NOT_SUPPORTED";
    case 4000: return "CUDNN_STATUS_INTERNAL_ERROR";
    case 4001: return "CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED";
    case 4003: return "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED";
    case 5000: return "CUDNN_STATUS_EXECUTION_FAILED";
    default: return "CUDNN_STATUS_OF_THE_STAND_IN";
  }
}

int cudnnCreateTensorDescriptor(void** made) { ENTRY_POINT(int); return made_handle(made); }
int cudnnCreateFilterDescriptor(void** made) { ENTRY_POINT(int); return made_handle(made); }
int cudnnCreateConvolutionDescriptor(void** made) { ENTRY_POINT(int); return made_handle(made); }
int cudnnCreateActivationDescriptor(void** made) { ENTRY_POINT(int); return made_handle(made); }
int cudnnCreateDropoutDescriptor(void** made) { ENTRY_POINT(int); return made_handle(made); }
int cudnnCreatePoolingDescriptor(void** made) { ENTRY_POINT(int); return made_handle(made); }

int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(void*, int, int, void*, void*, void*, void*, void*,
                                                             size_t* bytes) {
  ENTRY_POINT(int);
  *bytes = 0;
  return 0;
}

int cudnnGetBatchNormalizationBackwardExWorkspaceSize(void*, int, int, void*, void*, void*, void*, void*, void*, void*,
                                                      size_t* bytes) {
  ENTRY_POINT(int);
  *bytes = 0;
  return 0;
}

int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(void*, int, int, void*, void*, size_t* bytes) {
  ENTRY_POINT(int);
  *bytes = 0;
  return 0;
}
}

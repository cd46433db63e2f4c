// libcudart: devices, their properties, errors.
#include <cstdio>
#include <cstring>
#include <string>

#include "cards.h"
#include "knobs.h"
#include "runtime.h"

using namespace stand_in;

namespace stand_in {
thread_local cudaError_t last_error = cudaSuccess;

namespace {

constexpr int cuda_version = 13000;
constexpr int streaming_multiprocessors = 108;

int check_device(int device) {
  if (const int error = initialise()) return error;
  return device < 0 || device >= device_count() ? cudaErrorInvalidDevice : cudaSuccess;
}

const char* text_of(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInitializationError: return "initialization error";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorInsufficientDriver: return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorDevicesUnavailable: return "CUDA-capable device(s) is/are busy or unavailable";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorECCUncorrectable: return "uncorrectable ECC error encountered";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
    case cudaErrorLaunchOutOfResources: return "too many resources requested for launch";
    case cudaErrorLaunchFailure: return "unspecified launch failure";
    case cudaErrorNotSupported: return "operation not supported";
    case cudaErrorSystemNotReady: return "system not yet initialized";
    case cudaErrorSystemDriverMismatch: return "system has unsupported display driver / cuda driver combination";
    default: return "an error the stand-in has no text for";
  }
}

}  // namespace
}  // namespace stand_in

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  RUNTIME_ENTRY_POINT();
  if (const int error = initialise()) return told(error);
  *count = device_count();
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  RUNTIME_ENTRY_POINT();
  if (const int error = initialise()) return told(error);
  *device = current_device();
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  RUNTIME_ENTRY_POINT();
  return told(set_device(device));
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* found, int device) {
  RUNTIME_ENTRY_POINT();
  if (const int error = check_device(device)) return told(error);
  const Unit unit = unit_of_device(device);
  memset(found, 0, sizeof *found);
  snprintf(found->name, sizeof found->name, "%s", name(unit).c_str());
  uuid_bytes(unit, found->uuid.bytes);
  found->totalGlobalMem = total_bytes(unit);
  found->major = capability_major();
  found->minor = capability_minor();
  found->multiProcessorCount = streaming_multiprocessors;
  found->integrated = is_integrated();
  found->warpSize = 32;
  found->maxThreadsPerBlock = found->maxThreadsDim[0] = found->maxThreadsDim[1] = 1024;
  found->maxThreadsDim[2] = 64;
  found->maxThreadsPerMultiProcessor = 2048;
  found->maxBlocksPerMultiProcessor = 32;
  found->maxGridSize[0] = 2147483647;
  found->maxGridSize[1] = found->maxGridSize[2] = 65535;
  found->sharedMemPerBlock = 49152;
  found->sharedMemPerBlockOptin = 166912;
  found->sharedMemPerMultiprocessor = 167936;
  found->regsPerBlock = found->regsPerMultiprocessor = 65536;
  found->l2CacheSize = 40 << 20;
  found->concurrentKernels = found->unifiedAddressing = found->canMapHostMemory = found->memoryPoolsSupported = 1;
  found->pciBusID = unit.card + 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  RUNTIME_ENTRY_POINT();
  cudaDeviceProp found;
  if (const cudaError_t error = cudaGetDeviceProperties(&found, device)) return error;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = found.maxThreadsPerBlock; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = found.maxThreadsPerMultiProcessor; break;
    case cudaDevAttrWarpSize: *value = found.warpSize; break;
    case cudaDevAttrMultiProcessorCount: *value = found.multiProcessorCount; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = found.sharedMemPerBlock; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = found.sharedMemPerBlockOptin; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = found.sharedMemPerMultiprocessor; break;
    case cudaDevAttrMaxRegistersPerBlock: *value = found.regsPerBlock; break;
    case cudaDevAttrMaxGridDimX: *value = found.maxGridSize[0]; break;
    case cudaDevAttrMaxGridDimY: case cudaDevAttrMaxGridDimZ: *value = found.maxGridSize[1]; break;
    case cudaDevAttrComputeCapabilityMajor: *value = found.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = found.minor; break;
    case cudaDevAttrMemoryPoolsSupported: *value = 1; break;
    default: *value = 0;
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  RUNTIME_ENTRY_POINT();
  if (const int error = check_device(device)) return told(error);
  snprintf(text, length, "0000:%02X:00.0", unit_of_device(device).card + 1);
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  RUNTIME_ENTRY_POINT();
  *can = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  RUNTIME_ENTRY_POINT();
  if (const int error = use_context()) return told(error);
  wait_for_kernels();
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = static_cast<int>(knob_number("STAND_IN_DRIVER_CUDA", cuda_version));
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = cuda_version;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() { return last_error; }

const char* cudaGetErrorString(cudaError_t error) { return text_of(error); }

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInitializationError: return "cudaErrorInitializationError";
    default: return "cudaErrorOfTheStandIn";
  }
}
}

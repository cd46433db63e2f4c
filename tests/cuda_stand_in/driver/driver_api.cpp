// libcuda: what c10 takes from the driver itself, most of it for expandable segments.
#include <cuda.h>

#include <map>
#include <mutex>

#include "addresses.h"
#include "calls.h"
#include "memory.h"
#include "process.h"

using namespace stand_in;

namespace {

struct Handle {
  uint64_t bytes;
  Unit unit;
};

std::mutex guard;
std::map<CUmemGenericAllocationHandle, Handle> handles;
CUmemGenericAllocationHandle next_handle = 1;

}  // namespace

extern "C" {

CUresult cuInit(unsigned) { return static_cast<CUresult>(initialise()); }

CUresult cuDeviceGet(CUdevice* device, int number) {
  ENTRY_POINT(CUresult);
  if (const int error = initialise()) return static_cast<CUresult>(error);
  *device = number;
  return CUDA_SUCCESS;
}

// Asked before pages are made: may other devices reach them directly? None of these can do anything of the kind.
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute, CUdevice) {
  ENTRY_POINT(CUresult);
  *value = 0;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* is_active) {
  ENTRY_POINT(CUresult);
  *flags = 0;
  *is_active = device_has_context(device);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  ENTRY_POINT(CUresult);
  *context = device_has_context(current_device()) ? reinterpret_cast<CUcontext>(0x10) : nullptr;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory"
          : error == CUDA_ERROR_INVALID_VALUE ? "invalid argument"
                                              : "an error the stand-in has no text for";
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** text) {
  *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OF_THE_STAND_IN";
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) {
  ENTRY_POINT(CUresult);
  *bytes = page_bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t, CUdeviceptr, unsigned long long) {
  ENTRY_POINT(CUresult);
  *address = new_addresses(bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp* how,
                     unsigned long long) {
  ENTRY_POINT(CUresult);
  if (const int error = use_context()) return static_cast<CUresult>(error);
  const Handle made{bytes, unit_of_device(how->location.id)};
  if (!take(made.unit, made.bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::lock_guard<std::mutex> held(guard);
  *handle = next_handle++;
  handles[*handle] = made;
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  ENTRY_POINT(CUresult);
  const std::lock_guard<std::mutex> held(guard);
  const auto found = handles.find(handle);
  if (found == handles.end()) return CUDA_ERROR_INVALID_VALUE;
  give_back(found->second.unit, found->second.bytes);
  handles.erase(found);
  return CUDA_SUCCESS;
}
}

// libcudart: kernels that do nothing, streams and events.
#include <dlfcn.h>
#include <time.h>

#include <cstring>
#include <string>

#include "runtime.h"

using namespace stand_in;

namespace {

constexpr unsigned most_blocks_x = 2147483647, most_blocks_yz = 65535, most_threads = 1024, most_threads_z = 64;

bool is_launchable(dim3 grid, dim3 block) {
  if (!grid.x || !grid.y || !grid.z || !block.x || !block.y || !block.z) return false;
  if (grid.x > most_blocks_x || grid.y > most_blocks_yz || grid.z > most_blocks_yz) return false;
  return block.z <= most_threads_z && uint64_t{block.x} * block.y * block.z <= most_threads;
}

cudaError_t launched(dim3 grid, dim3 block) {
  if (const int error = use_context()) return told(error);
  if (!is_launchable(grid, block)) return told(cudaErrorInvalidConfiguration);
  queue_kernel();
  return cudaSuccess;
}

struct Event {
  uint64_t recorded_at_ns = 0;
};

uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000ULL + now.tv_nsec;
}

cudaError_t made_event(cudaEvent_t* event) {
  if (const int error = use_context()) return told(error);
  *event = reinterpret_cast<cudaEvent_t>(new Event);
  return cudaSuccess;
}

cudaError_t made_stream(cudaStream_t* stream) {
  static uintptr_t next = 0x1000;
  if (const int error = use_context()) return told(error);
  *stream = reinterpret_cast<cudaStream_t>(next += 16);
  return cudaSuccess;
}

cudaError_t recorded(cudaEvent_t event) {
  if (const int error = use_context()) return told(error);
  reinterpret_cast<Event*>(event)->recorded_at_ns = now_ns();
  return cudaSuccess;
}

// The shape of the launch that the compiler's code pushes before it calls the launching function.
thread_local struct {
  dim3 grid, block;
  size_t shared_bytes;
  void* stream;
} pushed;

}  // namespace

extern "C" {

cudaError_t cudaLaunchKernel(const void*, dim3 grid, dim3 block, void**, size_t, cudaStream_t) {
  RUNTIME_ENTRY_POINT();
  return launched(grid, block);
}

cudaError_t __cudaLaunchKernel(void*, dim3 grid, dim3 block, void**, size_t, cudaStream_t) {
  if (const int refusal = stand_in_refusal("cudaLaunchKernel")) return told(refusal);
  return launched(grid, block);
}

cudaError_t cudaLaunchCooperativeKernel(const void*, dim3 grid, dim3 block, void**, size_t, cudaStream_t) {
  RUNTIME_ENTRY_POINT();
  return launched(grid, block);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* shape, const void*, void**) {
  RUNTIME_ENTRY_POINT();
  return launched(shape->gridDim, shape->blockDim);
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, void* stream) {
  pushed = {grid, block, shared_bytes, stream};
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void* stream) {
  *grid = pushed.grid;
  *block = pushed.block;
  *shared_bytes = pushed.shared_bytes;
  *static_cast<void**>(stream) = pushed.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(void** kernel, const void* function) {
  *kernel = const_cast<void*>(function);
  return cudaSuccess;
}

void** __cudaRegisterFatBinary(void*) {
  static void* handle[4];
  return handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction() {}
void __cudaRegisterVar() {}
char __cudaInitModule(void**) { return 1; }

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* found, const void*) {
  RUNTIME_ENTRY_POINT();
  memset(found, 0, sizeof *found);
  found->maxThreadsPerBlock = 1024;
  found->numRegs = 32;
  found->ptxVersion = found->binaryVersion = capability_major() * 10 + capability_minor();
  found->maxDynamicSharedSizeBytes = 49152;
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int, size_t) {
  RUNTIME_ENTRY_POINT();
  *blocks = 2;
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int, size_t, unsigned) {
  RUNTIME_ENTRY_POINT();
  *blocks = 2;
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  RUNTIME_ENTRY_POINT();
  return made_stream(stream);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  RUNTIME_ENTRY_POINT();
  return made_stream(stream);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  RUNTIME_ENTRY_POINT();
  return made_stream(stream);
}

cudaError_t cudaStreamSynchronize(cudaStream_t) {
  RUNTIME_ENTRY_POINT();
  if (const int error = use_context()) return told(error);
  wait_for_kernels();
  return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t, int* priority) {
  RUNTIME_ENTRY_POINT();
  *priority = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  RUNTIME_ENTRY_POINT();
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  RUNTIME_ENTRY_POINT();
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t*, const cudaGraphNode_t**, const cudaGraphEdgeData**, size_t*) {
  RUNTIME_ENTRY_POINT();
  *status = cudaStreamCaptureStatusNone;
  if (id) *id = 0;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  RUNTIME_ENTRY_POINT();
  return made_event(event);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  RUNTIME_ENTRY_POINT();
  return made_event(event);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  RUNTIME_ENTRY_POINT();
  delete reinterpret_cast<Event*>(event);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  RUNTIME_ENTRY_POINT();
  return recorded(event);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t, unsigned) {
  RUNTIME_ENTRY_POINT();
  return recorded(event);
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  RUNTIME_ENTRY_POINT();
  const auto begin = reinterpret_cast<Event*>(from)->recorded_at_ns, end = reinterpret_cast<Event*>(to)->recorded_at_ns;
  *milliseconds = static_cast<float>(end - begin) / 1e6f;
  return cudaSuccess;
}

// The address of a driver function, as c10 asks for it.
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  RUNTIME_ENTRY_POINT();
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  *function = dlsym(driver, symbol);
  if (result) *result = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  if (!*function) log_line(std::string("libcuda has no ") + symbol);
  return cudaSuccess;
}
}

// libcudart: memory on the card, memory of the host that the card may read, and copies between them.
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "addresses.h"
#include "memory.h"
#include "runtime.h"

using namespace stand_in;

namespace {

struct Block {
  uint64_t bytes;
  Unit unit;
};

std::mutex guard;
std::map<const void*, Block> blocks;
std::map<const void*, size_t> pinned;  // memory of the host that the card may read

bool is_pinned(const void* pointer) {
  const std::lock_guard lock(guard);
  const auto after = pinned.upper_bound(pointer);
  if (after == pinned.begin()) return false;
  const auto [begin, bytes] = *std::prev(after);
  return static_cast<const char*>(pointer) < static_cast<const char*>(begin) + bytes;
}

// Nothing is computed on the card, so what comes from there is zeros.
void copy(void* to, const void* from, size_t bytes) {
  if (is_on_card(to)) return;
  if (is_on_card(from)) memset(to, 0, bytes);
  else memcpy(to, from, bytes);
}

cudaError_t copied(void* to, const void* from, size_t bytes, bool waits) {
  if (const int error = use_context()) return told(error);
  if (waits) wait_for_kernels();
  copy(to, from, bytes);
  return cudaSuccess;
}

cudaError_t allocated(void** pointer, size_t bytes) {
  if (const int error = use_context()) return told(error);
  const Block block{in_whole_pages(bytes), current_unit()};
  if (!take(block.unit, block.bytes)) return told(cudaErrorMemoryAllocation);
  *pointer = reinterpret_cast<void*>(new_addresses(block.bytes));
  const std::lock_guard<std::mutex> held(guard);
  blocks[*pointer] = block;
  return cudaSuccess;
}

cudaError_t freed(void* pointer) {
  if (const int error = use_context()) return told(error);
  if (!pointer) return cudaSuccess;
  wait_for_kernels();
  const std::lock_guard<std::mutex> held(guard);
  const auto found = blocks.find(pointer);
  if (found == blocks.end()) return told(cudaErrorInvalidValue);
  give_back(found->second.unit, found->second.bytes);
  blocks.erase(found);
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  RUNTIME_ENTRY_POINT();
  if (const int error = use_context()) return told(error);
  *free = free_bytes(current_unit());
  *total = total_bytes(current_unit());
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  RUNTIME_ENTRY_POINT();
  return allocated(pointer, bytes);
}

cudaError_t cudaFree(void* pointer) {
  RUNTIME_ENTRY_POINT();
  return freed(pointer);
}

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t) {
  RUNTIME_ENTRY_POINT();
  return allocated(pointer, bytes);
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t) {
  RUNTIME_ENTRY_POINT();
  return freed(pointer);
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned) {
  RUNTIME_ENTRY_POINT();
  if (posix_memalign(pointer, 4096, bytes) != 0) return told(cudaErrorMemoryAllocation);
  const std::lock_guard lock(guard);
  pinned[*pointer] = bytes;
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* pointer) {
  RUNTIME_ENTRY_POINT();
  const std::lock_guard lock(guard);
  pinned.erase(pointer);
  free(pointer);
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  RUNTIME_ENTRY_POINT();
  return copied(to, from, bytes, true);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
  RUNTIME_ENTRY_POINT();
  return copied(to, from, bytes, false);
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  RUNTIME_ENTRY_POINT();
  if (!is_on_card(to)) memset(to, value, bytes);
  return told(use_context());
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t) {
  RUNTIME_ENTRY_POINT();
  if (!is_on_card(to)) memset(to, value, bytes);
  return told(use_context());
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* found, const void* pointer) {
  RUNTIME_ENTRY_POINT();
  memset(found, 0, sizeof *found);
  found->type = is_on_card(pointer) ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
  if (is_pinned(pointer)) found->type = cudaMemoryTypeHost;
  found->device = current_device();
  found->devicePointer = const_cast<void*>(pointer);
  return cudaSuccess;
}

cudaError_t cudaGetSymbolAddress(void** pointer, const void*) {
  RUNTIME_ENTRY_POINT();
  static void* const address = reinterpret_cast<void*>(new_addresses(page_bytes));
  *pointer = address;
  return cudaSuccess;
}
}

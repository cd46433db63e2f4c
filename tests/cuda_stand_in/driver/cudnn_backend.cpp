// libcudnn's backend: convolutions as PyTorch plans them. A plan computes nothing, but wants its workspace.
//
// PyTorch describes the tensors and the convolution, asks which plans there are, and takes the first whose workspace
// it can allocate. Here are always two: a greedy one (STAND_IN_WORKSPACE, a percentage of the tensors' bytes) and a
// frugal one without any workspace.
#include <cstdint>
#include <cstring>
#include <vector>

#include "calls.h"
#include "knobs.h"
#include "process.h"

using namespace stand_in;

namespace {

// The backend's numbers, from its public API reference.
enum Kind { engine_configuration = 3, heuristics = 4, plan = 5, tensor = 17 };
enum Attribute {
  heuristics_results = 202,
  configuration_engine = 300,
  plan_workspace_bytes = 402,
  tensor_type = 901,
  tensor_dimensions = 902,
};
enum Type { type_descriptor = 15 };
constexpr int success = 0, bad_parameter = 2000, greedy = 0, plan_count = 2;

struct Descriptor {
  int kind = 0;
  int element_type = 0;
  std::vector<int64_t> dimensions;
  int64_t choice = greedy;    // of a configuration and its plan: which of the plans
  uint64_t tensor_bytes = 0;  // of everything the convolution reads and writes
};

size_t element_bytes(int type) {
  switch (type) {
    case 1: return 8;  // double
    case 2: case 9: return 2;  // half, bfloat16
    default: return 4;
  }
}

uint64_t bytes_of(const Descriptor& descriptor) {
  if (descriptor.kind != tensor) return descriptor.tensor_bytes;
  uint64_t bytes = element_bytes(descriptor.element_type);
  for (const int64_t dimension : descriptor.dimensions) bytes *= static_cast<uint64_t>(dimension);
  return bytes;
}

int64_t workspace_bytes(const Descriptor& plan_descriptor) {
  if (plan_descriptor.choice != greedy) return 0;
  return static_cast<int64_t>(plan_descriptor.tensor_bytes * knob_number("STAND_IN_WORKSPACE", 50) / 100);
}

// What a descriptor is made of may be gone when it is asked: it takes over at once what matters of it.
void take_over(Descriptor* whole, const Descriptor& part) {
  whole->tensor_bytes += bytes_of(part);
  if (whole->kind == plan && part.kind == engine_configuration) whole->choice = part.choice;
}

// Fills in the configurations that the caller made for the answer.
int64_t write_results(const Descriptor& asked, int64_t room, Descriptor** to) {
  for (int64_t i = 0; to && i < room && i < plan_count; i++) {
    to[i]->choice = i;
    to[i]->tensor_bytes = asked.tensor_bytes;
  }
  return plan_count;
}

}  // namespace

extern "C" {

int cudnnBackendCreateDescriptor(int kind, Descriptor** made) {
  ENTRY_POINT(int);
  *made = new Descriptor;
  (*made)->kind = kind;
  return success;
}

int cudnnBackendDestroyDescriptor(Descriptor* descriptor) {
  delete descriptor;
  return success;
}

int cudnnBackendSetAttribute(Descriptor* descriptor, int attribute, int type, int64_t count, const void* from) {
  ENTRY_POINT(int);
  if (count < 0 || (count && !from)) return bad_parameter;
  if (type == type_descriptor) {
    const auto* const* parts = static_cast<const Descriptor* const*>(from);
    for (int64_t i = 0; i < count; i++) take_over(descriptor, *parts[i]);
  } else if (descriptor->kind == tensor && attribute == tensor_type) {
    descriptor->element_type = *static_cast<const int*>(from);
  } else if (descriptor->kind == tensor && attribute == tensor_dimensions) {
    const auto* dimensions = static_cast<const int64_t*>(from);
    descriptor->dimensions.assign(dimensions, dimensions + count);
  }
  return success;
}

int cudnnBackendGetAttribute(const Descriptor* descriptor, int attribute, int, int64_t room, int64_t* count, void* to) {
  ENTRY_POINT(int);
  int64_t found = 0;
  if (descriptor->kind == heuristics && attribute == heuristics_results) {
    found = write_results(*descriptor, room, static_cast<Descriptor**>(to));
  } else if (descriptor->kind == plan && attribute == plan_workspace_bytes) {
    const int64_t bytes = workspace_bytes(*descriptor);
    memcpy(to, &bytes, sizeof bytes);
    found = 1;
  } else if (descriptor->kind == engine_configuration && attribute == configuration_engine) {
    found = 1;  // the engine the caller made says nothing of itself
  }
  if (count) *count = found;
  return success;
}

int cudnnBackendExecute(void*, const Descriptor*, const Descriptor*) {
  ENTRY_POINT(int);
  if (use_context()) return 5000;
  queue_kernel();
  return success;
}
}

// The parts of NVML's types that are used here, as its manual lays them out.
#pragma once

#include <cstdint>

#include "cards.h"

enum NvmlReturn : int {
  nvml_success = 0,
  nvml_invalid_argument = 2,
  nvml_not_supported = 3,
  nvml_not_found = 6,
  nvml_insufficient_size = 7,
  nvml_driver_not_loaded = 9,
};

struct NvmlMemory {
  unsigned long long total, free, used;
};

struct NvmlMemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};

struct NvmlProcess {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};

struct NvmlUtilization {
  unsigned gpu, memory;
};

struct NvmlTemperature {
  unsigned version;
  int sensor, temperature;
};

struct NvmlPci {
  char legacy_bus_id[16];
  unsigned domain, bus, device, pci_device_id, subsystem_id;
  char bus_id[32];
};

constexpr unsigned long long nvml_not_available = ~0ULL;
constexpr unsigned nvml_no_instance = ~0U;

// A device of NVML is the number of its unit, plus one: NULL names none.
using NvmlDevice = uintptr_t;

inline NvmlDevice device_of(const stand_in::Unit& unit) { return static_cast<NvmlDevice>(unit.number()) + 1; }

inline stand_in::Unit unit_of(NvmlDevice device) {
  const int number = static_cast<int>(device) - 1;
  return {number / 16, number % 16 - 1};
}

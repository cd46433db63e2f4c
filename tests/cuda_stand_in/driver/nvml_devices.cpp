// libnvidia-ml: which cards and instances there are, what they hold and for whom.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "calls.h"
#include "cards.h"
#include "knobs.h"
#include "memory.h"
#include "nvml_types.h"

using namespace stand_in;

namespace {

NvmlReturn write_text(const std::string& text, char* to, unsigned length) {
  if (text.size() >= length) return nvml_insufficient_size;
  memcpy(to, text.c_str(), text.size() + 1);
  return nvml_success;
}

// In a container NVML speaks of the host's process ids, and may not know what each process holds.
NvmlProcess as_listed(const Unit& unit, int pid, uint64_t bytes) {
  const bool is_unknown = knob_number("STAND_IN_PROCESS_MEMORY_UNKNOWN", 0);
  const unsigned instance = unit.instance < 0 ? nvml_no_instance : static_cast<unsigned>(unit.instance + 1);
  return {pid + static_cast<unsigned>(knob_number("STAND_IN_PID_SHIFT", 0)), is_unknown ? nvml_not_available : bytes,
          instance, unit.instance < 0 ? nvml_no_instance : 0};
}

std::vector<NvmlProcess> computing(const Unit& unit) {
  std::vector<NvmlProcess> found;
  for (const Holder& holder : holders(unit)) found.push_back(as_listed(unit, holder.pid, holder.bytes));
  return found;
}

// The desktop: one graphics process, the X server.
std::vector<NvmlProcess> drawing(const Unit& unit) {
  const uint64_t bytes = unit.instance < 0 ? knob_of_card("STAND_IN_DESKTOP", unit.card, 0) : 0;
  if (!bytes) return {};
  return {as_listed(unit, static_cast<int>(knob_number("STAND_IN_DESKTOP_PID", 1)), bytes)};
}

// NVML's way with lists: told no or too little room, it says how much there must be.
NvmlReturn write_processes(const std::vector<NvmlProcess>& found, unsigned* count, NvmlProcess* to) {
  const bool fits = found.size() <= *count;
  *count = static_cast<unsigned>(found.size());
  if (!fits) return nvml_insufficient_size;
  for (size_t i = 0; i < found.size(); i++) to[i] = found[i];
  return nvml_success;
}

NvmlReturn started() { return nvml_success; }

}  // namespace

extern "C" {

NvmlReturn nvmlInit_v2() {
  ENTRY_POINT(NvmlReturn);
  return started();
}

NvmlReturn nvmlInit() {
  ENTRY_POINT(NvmlReturn);
  return started();
}

NvmlReturn nvmlInitWithFlags(unsigned) {
  if (const int refusal = stand_in_refusal("nvmlInit_v2")) return static_cast<NvmlReturn>(refusal);
  return started();
}

NvmlReturn nvmlShutdown() { return nvml_success; }

const char* nvmlErrorString(NvmlReturn) { return "an error of the stand-in"; }

NvmlReturn nvmlSystemGetDriverVersion(char* to, unsigned length) {
  ENTRY_POINT(NvmlReturn);
  return write_text(knob("STAND_IN_DRIVER", "580.00.stand-in"), to, length);
}

NvmlReturn nvmlSystemGetNVMLVersion(char* to, unsigned length) {
  ENTRY_POINT(NvmlReturn);
  return write_text("13.580.00.stand-in", to, length);
}

NvmlReturn nvmlSystemGetCudaDriverVersion_v2(int* version) {
  ENTRY_POINT(NvmlReturn);
  *version = static_cast<int>(knob_number("STAND_IN_DRIVER_CUDA", 13000));
  return nvml_success;
}

NvmlReturn nvmlDeviceGetCount_v2(unsigned* count) {
  ENTRY_POINT(NvmlReturn);
  *count = static_cast<unsigned>(card_count());
  return nvml_success;
}

NvmlReturn nvmlDeviceGetHandleByIndex_v2(unsigned index, NvmlDevice* device) {
  ENTRY_POINT(NvmlReturn);
  if (index >= static_cast<unsigned>(card_count())) return nvml_invalid_argument;
  *device = device_of({static_cast<int>(index), -1});
  return nvml_success;
}

NvmlReturn nvmlDeviceGetHandleByUUID(const char* wanted, NvmlDevice* device) {
  ENTRY_POINT(NvmlReturn);
  if (!wanted) return nvml_invalid_argument;
  for (int card = 0; card < card_count(); card++) {
    std::vector<Unit> units = instances(card);
    units.push_back({card, -1});
    for (const Unit& unit : units) {
      if (uuid(unit) != wanted) continue;
      *device = device_of(unit);
      return nvml_success;
    }
  }
  return nvml_not_found;
}

NvmlReturn nvmlDeviceGetHandleByPciBusId_v2(const char* wanted, NvmlDevice* device) {
  ENTRY_POINT(NvmlReturn);
  for (int card = 0; card < card_count(); card++) {
    char bus_id[16];
    snprintf(bus_id, sizeof bus_id, "%02X:00.0", card + 1);
    if (!wanted || !strstr(wanted, bus_id)) continue;
    *device = device_of({card, -1});
    return nvml_success;
  }
  return nvml_not_found;
}

NvmlReturn nvmlDeviceGetIndex(NvmlDevice device, unsigned* index) {
  ENTRY_POINT(NvmlReturn);
  *index = static_cast<unsigned>(unit_of(device).card);
  return nvml_success;
}

NvmlReturn nvmlDeviceGetName(NvmlDevice device, char* to, unsigned length) {
  ENTRY_POINT(NvmlReturn);
  return write_text(name(unit_of(device)), to, length);
}

NvmlReturn nvmlDeviceGetUUID(NvmlDevice device, char* to, unsigned length) {
  ENTRY_POINT(NvmlReturn);
  return write_text(uuid(unit_of(device)), to, length);
}

NvmlReturn nvmlDeviceGetPciInfo_v3(NvmlDevice device, NvmlPci* found) {
  ENTRY_POINT(NvmlReturn);
  memset(found, 0, sizeof *found);
  found->bus = static_cast<unsigned>(unit_of(device).card + 1);
  snprintf(found->bus_id, sizeof found->bus_id, "00000000:%02X:00.0", found->bus);
  snprintf(found->legacy_bus_id, sizeof found->legacy_bus_id, "0000:%02X:00.0", found->bus);
  return nvml_success;
}

NvmlReturn nvmlDeviceGetCudaComputeCapability(NvmlDevice, int* major, int* minor) {
  ENTRY_POINT(NvmlReturn);
  *major = capability_major();
  *minor = capability_minor();
  return nvml_success;
}

NvmlReturn nvmlDeviceGetMemoryInfo(NvmlDevice device, NvmlMemory* found) {
  ENTRY_POINT(NvmlReturn);
  const Unit unit = unit_of(device);
  *found = {total_bytes(unit), free_bytes(unit), total_bytes(unit) - free_bytes(unit)};
  return nvml_success;
}

NvmlReturn nvmlDeviceGetMemoryInfo_v2(NvmlDevice device, NvmlMemoryV2* found) {
  ENTRY_POINT(NvmlReturn);
  const Unit unit = unit_of(device);
  *found = {found->version, total_bytes(unit), 0, free_bytes(unit), total_bytes(unit) - free_bytes(unit)};
  return nvml_success;
}

NvmlReturn nvmlDeviceGetComputeRunningProcesses_v3(NvmlDevice device, unsigned* count, NvmlProcess* to) {
  ENTRY_POINT(NvmlReturn);
  return write_processes(computing(unit_of(device)), count, to);
}

NvmlReturn nvmlDeviceGetComputeRunningProcesses(NvmlDevice device, unsigned* count, NvmlProcess* to) {
  return nvmlDeviceGetComputeRunningProcesses_v3(device, count, to);
}

NvmlReturn nvmlDeviceGetGraphicsRunningProcesses_v3(NvmlDevice device, unsigned* count, NvmlProcess* to) {
  ENTRY_POINT(NvmlReturn);
  return write_processes(drawing(unit_of(device)), count, to);
}

NvmlReturn nvmlDeviceGetMigMode(NvmlDevice device, unsigned* current, unsigned* pending) {
  ENTRY_POINT(NvmlReturn);
  if (knob("STAND_IN_MIG").empty()) return nvml_not_supported;  // cards before the A100 answer so
  *current = *pending = is_cut_up(unit_of(device).card);
  return nvml_success;
}

NvmlReturn nvmlDeviceGetMaxMigDeviceCount(NvmlDevice, unsigned* count) {
  ENTRY_POINT(NvmlReturn);
  *count = 7;
  return nvml_success;
}

NvmlReturn nvmlDeviceGetMigDeviceHandleByIndex(NvmlDevice device, unsigned slot, NvmlDevice* found) {
  ENTRY_POINT(NvmlReturn);
  for (const Unit& unit : instances(unit_of(device).card)) {
    if (slot_of(unit) != static_cast<int>(slot)) continue;
    *found = device_of(unit);
    return nvml_success;
  }
  return nvml_not_found;
}

NvmlReturn nvmlDeviceIsMigDeviceHandle(NvmlDevice device, unsigned* is_instance) {
  ENTRY_POINT(NvmlReturn);
  *is_instance = unit_of(device).instance >= 0;
  return nvml_success;
}

NvmlReturn nvmlDeviceGetDeviceHandleFromMigDeviceHandle(NvmlDevice device, NvmlDevice* card) {
  ENTRY_POINT(NvmlReturn);
  *card = device_of({unit_of(device).card, -1});
  return nvml_success;
}

NvmlReturn nvmlDeviceGetGpuInstanceId(NvmlDevice device, unsigned* number) {
  ENTRY_POINT(NvmlReturn);
  *number = static_cast<unsigned>(unit_of(device).instance + 1);
  return nvml_success;
}

NvmlReturn nvmlDeviceGetComputeInstanceId(NvmlDevice, unsigned* number) {
  ENTRY_POINT(NvmlReturn);
  *number = 0;
  return nvml_success;
}
}

// libnvidia-ml: how the cards are: clocks, power, temperature, throttling, load, ECC and modes. All of it by knobs.
#include <string>

#include "calls.h"
#include "knobs.h"
#include "memory.h"
#include "nvml_types.h"

using namespace stand_in;

namespace {

constexpr uint64_t graphics_clock = 0, sm_clock = 1, memory_clock = 2;

uint64_t of(NvmlDevice device, const char* knob_name, uint64_t fallback) {
  return knob_of_card(knob_name, unit_of(device).card, fallback);
}

// One figure of one card. The word "none" in the knob says: this card does not tell.
template <typename Number>
NvmlReturn write_figure(NvmlDevice device, const char* knob_name, uint64_t fallback, Number* to) {
  if (knob_text_of_card(knob_name, unit_of(device).card, "") == "none") return nvml_not_supported;
  *to = static_cast<Number>(of(device, knob_name, fallback));
  return nvml_success;
}

NvmlReturn write_clock(NvmlDevice device, int kind, const char* knob_name, unsigned* to) {
  const uint64_t highest = of(device, "STAND_IN_CLOCK_MAX_MHZ", 1410);
  if (kind == memory_clock) return write_figure(device, "STAND_IN_MEMORY_CLOCK_MHZ", 1215, to);
  if (kind != graphics_clock && kind != sm_clock) return nvml_not_supported;
  return write_figure(device, knob_name, highest, to);
}

}  // namespace

extern "C" {

NvmlReturn nvmlDeviceGetClockInfo(NvmlDevice device, int kind, unsigned* mhz) {
  ENTRY_POINT(NvmlReturn);
  return write_clock(device, kind, "STAND_IN_CLOCK_MHZ", mhz);
}

NvmlReturn nvmlDeviceGetClock(NvmlDevice device, int kind, int, unsigned* mhz) {
  ENTRY_POINT(NvmlReturn);
  return write_clock(device, kind, "STAND_IN_CLOCK_MHZ", mhz);
}

NvmlReturn nvmlDeviceGetMaxClockInfo(NvmlDevice device, int kind, unsigned* mhz) {
  ENTRY_POINT(NvmlReturn);
  return write_clock(device, kind, "STAND_IN_CLOCK_MAX_MHZ", mhz);
}

NvmlReturn nvmlDeviceGetPowerUsage(NvmlDevice device, unsigned* milliwatts) {
  ENTRY_POINT(NvmlReturn);
  return write_figure(device, "STAND_IN_POWER_MILLIWATTS", 55'000, milliwatts);
}

NvmlReturn nvmlDeviceGetEnforcedPowerLimit(NvmlDevice device, unsigned* milliwatts) {
  ENTRY_POINT(NvmlReturn);
  return write_figure(device, "STAND_IN_POWER_LIMIT_MILLIWATTS", 250'000, milliwatts);
}

NvmlReturn nvmlDeviceGetPowerManagementLimit(NvmlDevice device, unsigned* milliwatts) {
  ENTRY_POINT(NvmlReturn);
  return write_figure(device, "STAND_IN_POWER_LIMIT_MILLIWATTS", 250'000, milliwatts);
}

NvmlReturn nvmlDeviceGetPowerManagementDefaultLimit(NvmlDevice, unsigned* milliwatts) {
  ENTRY_POINT(NvmlReturn);
  *milliwatts = 250'000;
  return nvml_success;
}

NvmlReturn nvmlDeviceGetTemperature(NvmlDevice device, int, unsigned* celsius) {
  ENTRY_POINT(NvmlReturn);
  return write_figure(device, "STAND_IN_TEMPERATURE", 40, celsius);
}

NvmlReturn nvmlDeviceGetTemperatureV(NvmlDevice device, NvmlTemperature* found) {
  ENTRY_POINT(NvmlReturn);
  return write_figure(device, "STAND_IN_TEMPERATURE", 40, &found->temperature);
}

// Bits as NVML has them: 0x1 idle, 0x4 power cap, 0x8 hardware slowdown, 0x20 thermal slowdown by software.
NvmlReturn nvmlDeviceGetCurrentClocksEventReasons(NvmlDevice device, unsigned long long* reasons) {
  ENTRY_POINT(NvmlReturn);
  return write_figure(device, "STAND_IN_THROTTLE_REASONS", 0, reasons);
}

NvmlReturn nvmlDeviceGetCurrentClocksThrottleReasons(NvmlDevice device, unsigned long long* reasons) {
  ENTRY_POINT(NvmlReturn);
  return write_figure(device, "STAND_IN_THROTTLE_REASONS", 0, reasons);
}

NvmlReturn nvmlDeviceGetSupportedClocksEventReasons(NvmlDevice, unsigned long long* reasons) {
  ENTRY_POINT(NvmlReturn);
  *reasons = 0x1FF;
  return nvml_success;
}

NvmlReturn nvmlDeviceGetSupportedClocksThrottleReasons(NvmlDevice, unsigned long long* reasons) {
  ENTRY_POINT(NvmlReturn);
  *reasons = 0x1FF;
  return nvml_success;
}

NvmlReturn nvmlDeviceGetUtilizationRates(NvmlDevice device, NvmlUtilization* found) {
  ENTRY_POINT(NvmlReturn);
  const Unit unit = unit_of(device);
  if (unit.instance >= 0) return nvml_not_supported;  // as on real instances
  found->memory = static_cast<unsigned>(100 * used_bytes(unit) / total_bytes(unit));
  return write_figure(device, "STAND_IN_UTILIZATION", 0, &found->gpu);
}

NvmlReturn nvmlDeviceGetEccMode(NvmlDevice device, unsigned* current, unsigned* pending) {
  ENTRY_POINT(NvmlReturn);
  const NvmlReturn answer = write_figure(device, "STAND_IN_ECC", 1, current);
  *pending = *current;
  return answer;
}

NvmlReturn nvmlDeviceGetTotalEccErrors(NvmlDevice device, int, int, unsigned long long* errors) {
  ENTRY_POINT(NvmlReturn);
  return write_figure(device, "STAND_IN_ECC_ERRORS", 0, errors);
}

NvmlReturn nvmlDeviceGetPersistenceMode(NvmlDevice device, unsigned* is_on) {
  ENTRY_POINT(NvmlReturn);
  return write_figure(device, "STAND_IN_PERSISTENCE", 1, is_on);
}

NvmlReturn nvmlDeviceGetComputeMode(NvmlDevice, unsigned* mode) {
  ENTRY_POINT(NvmlReturn);
  *mode = knob_number("STAND_IN_EXCLUSIVE", 0) ? 3 : 0;  // exclusive process, or default
  return nvml_success;
}

NvmlReturn nvmlDeviceGetPerformanceState(NvmlDevice, unsigned* state) {
  ENTRY_POINT(NvmlReturn);
  *state = 0;
  return nvml_success;
}
}

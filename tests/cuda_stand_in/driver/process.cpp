#include "process.h"

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

#include "calls.h"
#include "knobs.h"
#include "memory.h"

namespace stand_in {
namespace {

constexpr int out_of_memory = 2, initialization_error = 3, devices_unavailable = 46, no_device = 100, invalid_device = 101;

std::atomic<int> initialised_by{0};  // the process that called cuInit, here or before a fork
std::vector<Unit> visible;
std::mutex guard;
thread_local int device = 0;
std::atomic<uint64_t> devices_with_context{0};  // one bit for each
std::atomic<uint64_t> busy_until_ns{0};

uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000ULL + now.tv_nsec;
}

uint64_t kernel_ns() {
  static uint64_t ns = 0;
  static uint64_t read_at_ns = 0;
  if (now_ns() - read_at_ns > 10'000'000) {  // a clock may be throttled in the middle of a test
    const int card = current_unit().card;
    const uint64_t highest = knob_of_card("STAND_IN_CLOCK_MAX_MHZ", card, 1410);
    const uint64_t clock = knob_of_card("STAND_IN_CLOCK_MHZ", card, highest);
    ns = knob_number("STAND_IN_KERNEL_MICROSECONDS", 0) * 1000 * highest / clock;
    read_at_ns = now_ns();
  }
  return ns;
}

int open_context_of(int number) {
  if (devices_with_context & (1ULL << number)) return 0;
  if (const int refusal = stand_in_refusal("cuDevicePrimaryCtxRetain")) return refusal;
  switch (open_context(unit_of_device(number))) {
    case Opening::out_of_memory: return out_of_memory;
    case Opening::busy: return devices_unavailable;
    default: devices_with_context |= 1ULL << number; return 0;
  }
}

}  // namespace

int initialise() {
  const std::lock_guard<std::mutex> held(guard);
  if (initialised_by == 0) {
    if (const int refusal = stand_in_refusal("cuInit")) return refusal;
    visible = visible_units();
    initialised_by = getpid();
    log_line("cuInit");
  }
  if (initialised_by != getpid()) return initialization_error;
  return visible.empty() ? no_device : 0;
}

int use_context() {
  if (const int error = initialise()) return error;
  return open_context_of(device);
}

int device_count() { return static_cast<int>(visible.size()); }

int current_device() { return device; }

int set_device(int number) {
  if (const int error = initialise()) return error;
  if (number < 0 || number >= device_count()) return invalid_device;
  device = number;
  return open_context_of(number);
}

Unit unit_of_device(int number) { return number < device_count() ? visible[number] : Unit{}; }

Unit current_unit() { return unit_of_device(device); }

bool device_has_context(int number) {
  return initialised_by == getpid() && (devices_with_context & (1ULL << number));
}

void queue_kernel() {
  const uint64_t duration = kernel_ns();
  if (!duration) return;
  const uint64_t starts = std::max(now_ns(), busy_until_ns.load());
  busy_until_ns = starts + duration;
}

void wait_for_kernels() {
  const uint64_t until = busy_until_ns, now = now_ns();
  if (until > now) usleep((until - now) / 1000);
}

}  // namespace stand_in

#include "memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "calls.h"
#include "knobs.h"

namespace stand_in {
namespace {

constexpr uint64_t mib = 1ULL << 20;
constexpr int slot_count = 1024;

// What one process holds of one unit.
struct Slot {
  int pid;  // 0: the slot is free
  int unit;
  uint64_t started_at;  // tells a process from a later one with the same number
  uint64_t context_bytes, bytes;
  uint64_t seen_dead_at_ms;  // 0: it lives

  uint64_t all_bytes() const { return context_bytes + bytes; }
};

Slot* slots = nullptr;
int file = -1;
int file_of_process = 0;
uint64_t own_start = 0;
std::mutex guard;

uint64_t now_ms() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000ULL + now.tv_nsec / 1'000'000;
}

// When a process was started, in the kernel's ticks; 0 where it is dead or waits to be reaped.
uint64_t start_of(int pid) {
  char path[64], text[512] = {};
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  FILE* stat = fopen(path, "r");
  if (!stat) return 0;
  const size_t length = fread(text, 1, sizeof text - 1, stat);
  fclose(stat);
  const char* field = length ? strrchr(text, ')') : nullptr;  // the name before it may hold spaces
  if (!field || field[2] == 'Z' || field[2] == 'X') return 0;
  for (int skipped = 0; skipped < 20; skipped++) field = strchr(field + 1, ' ');
  return strtoull(field, nullptr, 10);
}

void open_file() {
  if (file_of_process == getpid()) return;
  file = open((folder() + "/cards").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0 || ftruncate(file, slot_count * sizeof(Slot)) != 0) abort();
  void* mapped = mmap(nullptr, slot_count * sizeof(Slot), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) abort();
  slots = static_cast<Slot*>(mapped);
  own_start = start_of(getpid());
  file_of_process = getpid();
}

// Holds the cards still, among threads and among processes. The kernel lets go of it where a process is killed.
class Locked {
 public:
  Locked() : held_(guard) {
    open_file();
    lock(F_WRLCK);
  }
  ~Locked() { lock(F_UNLCK); }

 private:
  static void lock(short kind) {
    struct flock whole = {};
    whole.l_type = kind;
    whole.l_whence = SEEK_SET;
    while (fcntl(file, F_SETLKW, &whole) != 0) continue;  // a signal came in between
  }
  std::lock_guard<std::mutex> held_;
};

// Whether a slot still counts. The memory of the dead comes back STAND_IN_RELEASE_MS after their death was seen.
bool counts(Slot& slot) {
  if (slot.pid == 0) return false;
  if (slot.pid == getpid() || start_of(slot.pid) == slot.started_at) return true;
  if (slot.seen_dead_at_ms == 0) slot.seen_dead_at_ms = now_ms();
  if (now_ms() - slot.seen_dead_at_ms < knob_number("STAND_IN_RELEASE_MS", 0)) return true;
  slot = {};
  return false;
}

Slot& own_slot(const Unit& unit) {
  Slot* unused = nullptr;
  for (int i = 0; i < slot_count; i++) {
    Slot& slot = slots[i];
    if (slot.pid == getpid() && slot.started_at == own_start && slot.unit == unit.number()) return slot;
    if (!unused && !counts(slot)) unused = &slot;
  }
  if (!unused) abort();  // more processes than any test has
  *unused = {getpid(), unit.number(), own_start, 0, 0, 0};
  return *unused;
}

uint64_t held_by_nobody_here(const Unit& unit) {
  if (unit.instance >= 0) return 0;
  return knob_of_card("STAND_IN_HELD", unit.card, 0) + knob_of_card("STAND_IN_DESKTOP", unit.card, 0);
}

uint64_t used_while_locked(const Unit& unit) {
  uint64_t used = held_by_nobody_here(unit);
  for (int i = 0; i < slot_count; i++) {
    if (slots[i].pid && slots[i].unit == unit.number() && counts(slots[i])) used += slots[i].all_bytes();
  }
  return used;
}

// What the driver hands out: the card's memory, and the host's behind it where it spills over.
uint64_t obtainable_bytes(const Unit& unit) {
  return total_bytes(unit) + knob_of_card("STAND_IN_SPILL", unit.card, 0);
}

bool somebody_else_has_a_context(const Unit& unit) {
  for (int i = 0; i < slot_count; i++) {
    Slot& slot = slots[i];
    if (slot.unit == unit.number() && slot.pid != getpid() && counts(slot) && slot.context_bytes) return true;
  }
  return false;
}

}  // namespace

Opening open_context(const Unit& unit) {
  {
    const Locked locked;
    Slot& slot = own_slot(unit);
    if (slot.context_bytes) return Opening::was_open;
    if (knob_number("STAND_IN_EXCLUSIVE", 0) && somebody_else_has_a_context(unit)) return Opening::busy;
    const uint64_t bytes = knob_of_card("STAND_IN_CONTEXT", unit.card, 480 * mib);
    if (used_while_locked(unit) + bytes > obtainable_bytes(unit)) return Opening::out_of_memory;
    slot.context_bytes = bytes;
  }
  log_line("context " + uuid(unit));
  return Opening::done;
}

bool has_context(const Unit& unit) {
  const Locked locked;
  return own_slot(unit).context_bytes > 0;
}

bool take(const Unit& unit, uint64_t bytes) {
  const Locked locked;
  if (used_while_locked(unit) + bytes > obtainable_bytes(unit)) return false;
  own_slot(unit).bytes += bytes;
  return true;
}

void give_back(const Unit& unit, uint64_t bytes) {
  const Locked locked;
  own_slot(unit).bytes -= bytes;
}

uint64_t used_bytes(const Unit& unit) {
  const Locked locked;
  return used_while_locked(unit);
}

uint64_t free_bytes(const Unit& unit) {
  const uint64_t used = used_bytes(unit), total = total_bytes(unit);
  return used > total ? 0 : total - used;
}

std::vector<Holder> holders(const Unit& unit) {
  const Locked locked;
  std::vector<Holder> found;
  for (int i = 0; i < slot_count; i++) {
    Slot& slot = slots[i];
    if (slot.pid && slot.unit == unit.number() && counts(slot) && slot.context_bytes) {
      found.push_back({slot.pid, slot.all_bytes()});
    }
  }
  return found;
}

}  // namespace stand_in

// Who holds how much of which card, counted over all processes in one shared file.
#pragma once

#include <cstdint>
#include <vector>

#include "cards.h"

namespace stand_in {

struct Holder {
  int pid;
  uint64_t bytes;
};

enum class Opening { done, was_open, out_of_memory, busy };

// A context of this process on `unit`: it costs memory, and the card may be in exclusive mode.
Opening open_context(const Unit& unit);
bool has_context(const Unit& unit);

bool take(const Unit& unit, uint64_t bytes);
void give_back(const Unit& unit, uint64_t bytes);

// All that is in use there: by processes, by whoever STAND_IN_HELD and STAND_IN_DESKTOP speak of.
uint64_t used_bytes(const Unit& unit);
uint64_t free_bytes(const Unit& unit);

// The processes that have a context there.
std::vector<Holder> holders(const Unit& unit);

}  // namespace stand_in

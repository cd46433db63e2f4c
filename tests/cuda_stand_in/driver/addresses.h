// Addresses of memory on a card. Nothing lies there: a program that follows one dies, as it would on a real card.
#pragma once

#include <cstdint>

namespace stand_in {

constexpr uint64_t first_address = 0x200000000000, last_address = 0x400000000000;
constexpr uint64_t page_bytes = 2ULL << 20;  // what the driver rounds to

inline uint64_t in_whole_pages(uint64_t bytes) { return (bytes + page_bytes - 1) / page_bytes * page_bytes; }

inline bool is_on_card(const void* pointer) {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  return address >= first_address && address < last_address;
}

// Addresses that were never given out before, with a gap behind them.
uint64_t new_addresses(uint64_t bytes);

}  // namespace stand_in

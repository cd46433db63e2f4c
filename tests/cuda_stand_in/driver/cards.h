// The made-up cards: what there is, what it is called, and which of it a process may see.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stand_in {

// Something memory belongs to: a whole card (instance -1), or one MIG instance of a card that is cut up.
struct Unit {
  int card = 0;
  int instance = -1;

  int number() const { return card * 16 + instance + 1; }  // its number in the shared memory
  bool operator==(const Unit& other) const { return number() == other.number(); }
};

int card_count();
bool is_cut_up(int card);
std::vector<Unit> instances(int card);

// The slot of an instance on its card. Every second slot stays empty, as after an instance was deleted.
int slot_of(const Unit& unit);

uint64_t total_bytes(const Unit& unit);
std::string name(const Unit& unit);
std::string uuid(const Unit& unit);
void uuid_bytes(const Unit& unit, char bytes[16]);
int is_integrated();
int capability_major();
int capability_minor();

// What CUDA shows this process, by CUDA_VISIBLE_DEVICES: cards by number or uuid, or one MIG instance and nothing else.
std::vector<Unit> visible_units();

}  // namespace stand_in

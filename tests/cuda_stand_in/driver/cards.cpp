#include "cards.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "knobs.h"

namespace stand_in {
namespace {

constexpr uint64_t default_total_bytes = 24ULL << 30;
constexpr int first_byte_of_cards = 0x10, first_byte_of_instances = 0x80;

std::vector<Unit> every_unit() {
  std::vector<Unit> units;
  for (int card = 0; card < card_count(); card++) {
    if (!is_cut_up(card)) units.push_back({card, -1});
    for (const Unit& instance : instances(card)) units.push_back(instance);
  }
  return units;
}

bool is_number(const std::string& word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
}

// What one word of CUDA_VISIBLE_DEVICES names. Where a card is cut up, CUDA takes its first instance.
std::vector<Unit> named_by(const std::string& word) {
  std::vector<Unit> found;
  for (const Unit& unit : every_unit()) {
    const bool is_uuid = word.size() > 4 && uuid(unit).rfind(word, 0) == 0;
    if (is_uuid || (is_number(word) && std::stoi(word) == unit.card)) found.push_back(unit);
  }
  if (found.size() > 1) found.resize(1);
  return found;
}

// CUDA shows at most one MIG instance, and beside it no other card.
std::vector<Unit> as_cuda_shows(std::vector<Unit> units) {
  const auto instance = std::find_if(units.begin(), units.end(), [](const Unit& unit) { return unit.instance >= 0; });
  if (instance == units.end()) return units;
  return {*instance};
}

}  // namespace

int card_count() { return static_cast<int>(knob_number("STAND_IN_CARDS", 1)); }

bool is_cut_up(int card) { return knob_of_card("STAND_IN_MIG", card, 0) > 0; }

std::vector<Unit> instances(int card) {
  std::vector<Unit> found;
  const int count = static_cast<int>(knob_of_card("STAND_IN_MIG", card, 0));
  for (int instance = 0; instance < count; instance++) found.push_back({card, instance});
  return found;
}

int slot_of(const Unit& unit) { return unit.instance * 2; }

uint64_t total_bytes(const Unit& unit) {
  const uint64_t whole = knob_of_card("STAND_IN_MEMORY", unit.card, default_total_bytes);
  return unit.instance < 0 ? whole : whole / instances(unit.card).size();
}

std::string name(const Unit& unit) {
  const std::string card = knob_text_of_card("STAND_IN_NAME", unit.card, "Made-up GPU");
  if (unit.instance < 0) return card;
  return card + " MIG " + std::to_string(total_bytes(unit) >> 30) + "gb";
}

void uuid_bytes(const Unit& unit, char bytes[16]) {
  const bool is_instance = unit.instance >= 0;
  for (int i = 0; i < 16; i++) bytes[i] = static_cast<char>(first_byte_of_cards * (unit.card + 1) + i);
  if (is_instance) bytes[0] = static_cast<char>(first_byte_of_instances + unit.instance);
}

std::string uuid(const Unit& unit) {
  char bytes[16];
  uuid_bytes(unit, bytes);
  std::string text = unit.instance < 0 ? "GPU-" : "MIG-";
  for (int i = 0; i < 16; i++) {
    char digits[3];
    snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(bytes[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += "-";
    text += digits;
  }
  return text;
}

int is_integrated() { return knob("STAND_IN_INTEGRATED", "0") == "1"; }

int capability_major() { return std::stoi(knob("STAND_IN_CAPABILITY", "8.0")); }

int capability_minor() { return std::stoi(split(knob("STAND_IN_CAPABILITY", "8.0"), '.').at(1)); }

std::vector<Unit> visible_units() {
  const char* visible = getenv("CUDA_VISIBLE_DEVICES");
  if (!visible) return as_cuda_shows(every_unit());
  std::vector<Unit> units;
  for (const std::string& word : split(visible, ',')) {
    const std::vector<Unit> named = named_by(word);
    if (named.empty()) break;  // CUDA ignores what follows a word it does not know
    if (std::find(units.begin(), units.end(), named[0]) != units.end()) return {};  // a card twice: none at all
    units.push_back(named[0]);
  }
  return as_cuda_shows(units);
}

}  // namespace stand_in

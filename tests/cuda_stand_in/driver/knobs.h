// What a test asks of the made-up driver: settings by environment, or by a file that wins over it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stand_in {

// The folder that is one set of cards: their memory (`cards`), the log (`log`) and settings (`knobs`) lie there.
std::string folder();

// A setting as text. Read anew where the process was forked since, or the file `knobs` was written since.
std::string knob(const char* name, const std::string& fallback = "");

uint64_t knob_number(const char* name, uint64_t fallback);

// "4,8" gives card 0 the first number, and every later card the last one.
uint64_t knob_of_card(const char* name, int card, uint64_t fallback);
std::string knob_text_of_card(const char* name, int card, const std::string& fallback);

std::vector<std::string> split(const std::string& text, char separator);

}  // namespace stand_in

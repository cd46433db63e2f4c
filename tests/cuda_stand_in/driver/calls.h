// Every entry point begins by asking here whether it is to refuse, to hang, or to go on.
#pragma once

#include <string>

namespace stand_in {

// The error an entry point is to answer with (STAND_IN_FAIL), or 0. Does not return where it is to hang (STAND_IN_HANG).
extern "C" int stand_in_refusal(const char* entry_point);

// What an entry point answers that nobody has written here: `answer`, and a line in the log where that is an error.
extern "C" int stand_in_unwritten(const char* entry_point, int answer);

// One line in the log of the cards: "<process id> <what>".
void log_line(const std::string& what);

}  // namespace stand_in

// The first line of an entry point that returns `type`.
#define ENTRY_POINT(type)                                                   \
  do {                                                                      \
    if (const int refusal = stand_in::stand_in_refusal(__func__)) return static_cast<type>(refusal); \
  } while (false)

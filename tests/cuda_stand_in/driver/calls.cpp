#include "calls.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <vector>

#include "knobs.h"
#include "memory.h"
#include "process.h"

namespace stand_in {
namespace {

// "cuMemSetAccess:2:after=3:times=1:above=1000": which call, with which error, and when.
struct Rule {
  std::string entry_point;
  int error = 0;  // 0: it hangs
  uint64_t after = 0, times = UINT64_MAX, above_bytes = 0;
  uint64_t calls = 0, refusals = 0;

  Rule(const std::string& text, bool hangs) {
    std::vector<std::string> parts = split(text, ':');
    entry_point = parts.at(0);
    size_t next = 1;
    if (!hangs) error = std::stoi(parts.at(next++));
    for (; next < parts.size(); next++) set(parts[next]);
  }

  void set(const std::string& part) {
    const uint64_t number = std::stoull(part.substr(part.find('=') + 1));
    if (part.rfind("after=", 0) == 0) after = number;
    else if (part.rfind("times=", 0) == 0) times = number;
    else if (part.rfind("above=", 0) == 0) above_bytes = number;
    else throw std::invalid_argument("STAND_IN_FAIL: " + part + "; after=, times= or above= is allowed");
  }

  bool applies() {
    if (above_bytes && used_bytes(current_unit()) <= above_bytes) return false;
    if (calls++ < after || refusals >= times) return false;
    refusals++;
    return true;
  }
};

std::mutex guard;

// The rules of this process: a fork counts its calls from the beginning.
std::vector<Rule>& rules() {
  static std::vector<Rule> all;
  static int of_process = 0;
  if (of_process != getpid()) {
    all.clear();
    for (const std::string& text : split(knob("STAND_IN_FAIL"), ';')) all.emplace_back(text, false);
    for (const std::string& text : split(knob("STAND_IN_HANG"), ';')) all.emplace_back(text, true);
    of_process = getpid();
  }
  return all;
}

void hang(const char* entry_point) {
  log_line(std::string("hangs in ") + entry_point);
  while (true) pause();
}

}  // namespace

int stand_in_refusal(const char* entry_point) {
  std::unique_lock<std::mutex> held(guard);
  for (Rule& rule : rules()) {
    if (rule.entry_point != entry_point || !rule.applies()) continue;
    if (rule.error) {
      log_line(std::string("refuses ") + entry_point);
      return rule.error;
    }
    held.unlock();
    hang(entry_point);
  }
  return 0;
}

int stand_in_unwritten(const char* entry_point, int answer) {
  if (const int refusal = stand_in_refusal(entry_point)) return refusal;
  static std::set<std::string> said;
  const std::lock_guard<std::mutex> held(guard);
  if (answer && said.insert(entry_point).second) log_line(std::string("not imitated: ") + entry_point);
  return answer;
}

void log_line(const std::string& what) {
  const int log = open((folder() + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (log < 0) return;
  const std::string line = std::to_string(getpid()) + " " + what + "\n";
  if (write(log, line.data(), line.size()) < 0) return;  // a full disk is no reason to fail a test of memory
  close(log);
}

}  // namespace stand_in

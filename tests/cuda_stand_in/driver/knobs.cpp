#include "knobs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>

namespace stand_in {
namespace {

using Settings = std::map<std::string, std::string>;

std::mutex guard;

int64_t written_at(const std::string& path) {
  struct stat found;
  if (stat(path.c_str(), &found) != 0) return -1;
  return found.st_mtim.tv_sec * 1'000'000'000LL + found.st_mtim.tv_nsec;
}

Settings read_file(const std::string& path) {
  Settings settings;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t equals = line.find('=');
    if (equals != std::string::npos) settings[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return settings;
}

// The settings of the file. A test that changes them replaces the file, so its time of writing tells.
const Settings& from_file() {
  static Settings settings;
  static int64_t read_at = -2;
  static const std::string path = folder() + "/knobs";
  const int64_t now_written_at = written_at(path);
  if (now_written_at != read_at) {
    settings = read_file(path);
    read_at = now_written_at;
  }
  return settings;
}

std::string of_card(const std::string& text, int card) {
  const std::vector<std::string> values = split(text, ',');
  return values.at(std::min<size_t>(card, values.size() - 1));
}

}  // namespace

std::string folder() {
  const char* named = getenv("STAND_IN_FOLDER");
  const std::string path = named ? named : "/tmp/memorymark-stand-in-" + std::to_string(getuid());
  mkdir(path.c_str(), 0777);
  return path;
}

std::string knob(const char* name, const std::string& fallback) {
  const std::lock_guard<std::mutex> held(guard);
  const Settings& settings = from_file();
  const auto found = settings.find(name);
  if (found != settings.end()) return found->second;
  const char* value = getenv(name);
  return value && *value ? value : fallback;
}

uint64_t knob_number(const char* name, uint64_t fallback) {
  const std::string text = knob(name);
  return text.empty() ? fallback : std::stoull(text);
}

std::string knob_text_of_card(const char* name, int card, const std::string& fallback) {
  const std::string text = knob(name);
  return text.empty() ? fallback : of_card(text, card);
}

uint64_t knob_of_card(const char* name, int card, uint64_t fallback) {
  const std::string text = knob_text_of_card(name, card, "");
  return text.empty() ? fallback : std::stoull(text);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

}  // namespace stand_in

// fagen: compiled kernels on disk.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Cache.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace fagen::emulator {

namespace fs = std::filesystem;

Hash &Hash::add(std::string_view text) {
  const auto mix = [this](unsigned char byte) { state = (state ^ byte) * 0x100000001b3u; };
  for (const char c : text)
    mix(static_cast<unsigned char>(c));
  for (size_t length = text.size(), i = 0; i < 8; ++i, length >>= 8)
    mix(static_cast<unsigned char>(length));
  return *this;
}

std::string Hash::hex() const { return fmt::format("{:016x}", state); }

fs::path cacheDirectory(std::string &error) {
  const auto variable = [](const char *name) {
    const char *value = std::getenv(name);
    return fs::path(value ? value : "");
  };
  fs::path directory = variable("FAGEN_CACHE_DIR");
  if (directory.empty() && !variable("XDG_CACHE_HOME").empty())
    directory = variable("XDG_CACHE_HOME") / "fagen";
  if (directory.empty() && !variable("HOME").empty())
    directory = variable("HOME") / ".cache" / "fagen";
  if (directory.empty())
    directory = fs::temp_directory_path() / fmt::format("fagen-{}", getuid());
  directory /= "emulator";
  std::error_code code;
  fs::create_directories(directory, code);
  if (code) {
    error = fmt::format("cannot make the cache directory '{}': {}; set FAGEN_CACHE_DIR", directory.string(),
                        code.message());
    return {};
  }
  return directory;
}

std::optional<std::string> readFile(const fs::path &path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

bool writeFile(const fs::path &path, std::string_view content, std::string &error) {
  static std::atomic<unsigned> serial{0};
  const fs::path temporary = fmt::format("{}.{}.{}", path.string(), getpid(), serial++);
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
  bool good = file >= 0;
  while (good && !content.empty()) {
    const ssize_t written = write(file, content.data(), content.size());
    good = written >= 0 || errno == EINTR;
    content.remove_prefix(written > 0 ? static_cast<size_t>(written) : 0);
  }
  good = good && fsync(file) == 0;
  if (file >= 0)
    close(file);
  good = good && std::rename(temporary.c_str(), path.c_str()) == 0;
  if (!good) {
    error = fmt::format("cannot write '{}': {}", path.string(), std::strerror(errno));
    unlink(temporary.c_str());
  }
  return good;
}

std::string seal(std::string content) { return content + Hash().add(content).hex(); }

bool isIntact(const fs::path &path) {
  const std::optional<std::string> content = readFile(path);
  constexpr size_t kChecksum = 16;
  if (!content || content->size() < kChecksum)
    return false;
  const std::string_view text = *content;
  return Hash().add(text.substr(0, text.size() - kChecksum)).hex() == text.substr(text.size() - kChecksum);
}

} // namespace fagen::emulator

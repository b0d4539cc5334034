// fagen: compiled kernels on disk.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cache.h"

// XXH3 is header-only this way: the library gets no dependency. It is not cryptographic: the cache trusts its
// directory's owner, and the hash guards against accidents.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace fagen {
namespace {

namespace fs = std::filesystem;

struct Head {
  char magic[8];
  char key[32]; // hexadecimal, as in the file's name
  uint64_t length;
  char checksum[32]; // of the payload
};
constexpr char kMagic[8] = {'f', 'a', 'g', 'e', 'n', 'b', 'i', '1'};

bool readFile(const std::string &path, std::string &text) {
  FILE *file = fopen(path.c_str(), "rbe");
  if (!file)
    return false;
  char buffer[65536];
  size_t count;
  text.clear();
  while ((count = fread(buffer, 1, sizeof(buffer), file)) > 0)
    text.append(buffer, count);
  bool whole = !ferror(file);
  fclose(file);
  return whole;
}

bool writeAll(int file, std::string_view text) {
  while (!text.empty()) {
    ssize_t count = ::write(file, text.data(), text.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return false;
    text.remove_prefix(size_t(count));
  }
  return true;
}

/// Temporary file in the same directory, sync, rename.
bool replaceFile(const std::string &path, std::string_view head, std::string_view body) {
  std::string temporary = path + ".XXXXXX";
  int file = mkostemp(temporary.data(), O_CLOEXEC);
  if (file < 0)
    return false;
  bool written = writeAll(file, head) && writeAll(file, body) && fchmod(file, 0644) == 0 && fsync(file) == 0;
  written = close(file) == 0 && written;
  written = written && rename(temporary.c_str(), path.c_str()) == 0;
  if (!written)
    unlink(temporary.c_str());
  return written;
}

std::string environment(const char *name) {
  const char *value = getenv(name);
  return value ? value : "";
}

} // namespace

std::string hashParts(const std::vector<std::string_view> &parts) {
  XXH3_state_t *state = XXH3_createState();
  XXH3_128bits_reset(state);
  for (std::string_view part : parts) {
    uint64_t length = part.size();
    XXH3_128bits_update(state, &length, sizeof(length));
    XXH3_128bits_update(state, part.data(), part.size());
  }
  XXH128_hash_t hash = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  char text[33];
  snprintf(text, sizeof(text), "%016llx%016llx", (unsigned long long)hash.high64, (unsigned long long)hash.low64);
  return text;
}

Cache Cache::fromEnvironment() {
  if (std::string own = environment("FAGEN_CACHE_DIR"); !own.empty())
    return Cache(own);
  if (std::string xdg = environment("XDG_CACHE_HOME"); !xdg.empty())
    return Cache(xdg + "/fagen");
  if (std::string home = environment("HOME"); !home.empty())
    return Cache(home + "/.cache/fagen");
  return Cache("");
}

std::string Cache::stem(const std::string &name, const std::string &key) const {
  return directory.empty() ? "" : directory + "/" + name + "-" + key;
}

bool Cache::read(const std::string &name, const std::string &key, std::string &payload) const {
  std::string text;
  Head head;
  if (directory.empty() || !readFile(stem(name, key) + ".bin", text) || text.size() < sizeof(head))
    return false;
  memcpy(&head, text.data(), sizeof(head));
  std::string_view body = std::string_view(text).substr(sizeof(head));
  bool whole = memcmp(head.magic, kMagic, sizeof(kMagic)) == 0 && key.size() == sizeof(head.key) &&
               memcmp(head.key, key.data(), sizeof(head.key)) == 0 && head.length == body.size() &&
               hashParts({body}).compare(0, sizeof(head.checksum), head.checksum, sizeof(head.checksum)) == 0;
  if (whole)
    payload = body;
  return whole;
}

bool Cache::write(const std::string &name, const std::string &key, std::string_view source,
                  std::string_view payload) const {
  if (directory.empty() || key.size() != sizeof(Head::key))
    return false;
  std::error_code error;
  fs::create_directories(directory, error);
  if (error)
    return false;
  Head head = {};
  memcpy(head.magic, kMagic, sizeof(kMagic));
  memcpy(head.key, key.data(), sizeof(head.key));
  head.length = payload.size();
  memcpy(head.checksum, hashParts({payload}).data(), sizeof(head.checksum));
  // The source first: whoever finds the entry finds its source too.
  return replaceFile(stem(name, key) + ".cu", "", source) &&
         replaceFile(stem(name, key) + ".bin", {reinterpret_cast<const char *>(&head), sizeof(head)}, payload);
}

} // namespace fagen

// fagen: compiled kernels on disk.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compile/cache.h"

// XXH3 is header-only this way: the library gets no dependency. It is not cryptographic: it guards against accidents.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace fagen {
namespace {

struct Head {
  char magic[8];
  char key[32]; // hexadecimal, as in the file's name
  uint64_t length;
  char checksum[32]; // of the payload
};
constexpr char kMagic[8] = {'f', 'a', 'g', 'e', 'n', 'b', 'i', '1'};

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

Cache Cache::fromEnvironment(const std::string &part) {
  if (std::string own = environment("FAGEN_CACHE_DIR"); !own.empty())
    return Cache(own, part);
  if (std::string xdg = environment("XDG_CACHE_HOME"); !xdg.empty())
    return Cache(xdg + "/fagen", part);
  if (std::string home = environment("HOME"); !home.empty())
    return Cache(home + "/.cache/fagen", part);
  return Cache("");
}

/// The directory itself is asked first: a part of one that others can write to is nobody's own for long.
static PrivateDirectory openPart(const std::string &path, const std::string &part, std::string &refused) {
  PrivateDirectory whole(path, refused);
  return part.empty() || !whole.isOpen() ? std::move(whole) : PrivateDirectory(path + "/" + part, refused);
}

Cache::Cache(const std::string &path, const std::string &part)
    : directory(path.empty() ? PrivateDirectory() : openPart(path, part, refused)) {}

std::string Cache::stem(const std::string &name, const std::string &key) const {
  return directory.isOpen() ? directory.path() + "/" + name + "-" + key : "";
}

bool Cache::read(const std::string &name, const std::string &key, std::string &payload) const {
  std::string text;
  Head head;
  if (!directory.read(name + "-" + key + ".bin", text) || text.size() < sizeof(head))
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

bool Cache::write(const std::string &name, const std::string &key, std::string_view source, std::string_view payload,
                  std::string &error) const {
  if (!directory.isOpen() || key.size() != sizeof(Head::key))
    return false;
  Head head = {};
  memcpy(head.magic, kMagic, sizeof(kMagic));
  memcpy(head.key, key.data(), sizeof(head.key));
  head.length = payload.size();
  memcpy(head.checksum, hashParts({payload}).data(), sizeof(head.checksum));
  const std::string_view headBytes(reinterpret_cast<const char *>(&head), sizeof(head));
  // The source first: whoever finds the entry finds its source too.
  return directory.write(name + "-" + key + ".cu", {source}, error) &&
         directory.write(name + "-" + key + ".bin", {headBytes, payload}, error);
}

} // namespace fagen

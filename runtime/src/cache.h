// fagen: compiled kernels on disk.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An entry is <directory>/<name>-<key>.bin: a head with a magic number, the key, the payload's length and its checksum,
// then the payload; and beside it <name>-<key>.cu, the source, for people and profilers. Entries are written to a
// temporary file, synced and renamed, so that readers in other processes see a whole entry or none. Whatever does not
// match its head is treated as absent, and rewritten by the compilation that follows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fagen {

/// 128 bits of XXH3 over parts, in hexadecimal; each part's length is hashed too, so no two lists of parts look alike.
std::string hashParts(const std::vector<std::string_view> &parts);

class Cache {
public:
  /// FAGEN_CACHE_DIR, else XDG_CACHE_HOME/fagen, else HOME/.cache/fagen; none of them set: no cache.
  static Cache fromEnvironment();
  explicit Cache(std::string directory) : directory(std::move(directory)) {}

  /// Fetches an entry's payload. False when there is none, or it is damaged.
  bool read(const std::string &name, const std::string &key, std::string &payload) const;

  /// Writes an entry; false when the directory cannot be written (a cache is a help, not a need).
  bool write(const std::string &name, const std::string &key, std::string_view source, std::string_view payload) const;

  /// Where an entry lies, without ".bin" or ".cu"; empty without a cache.
  std::string stem(const std::string &name, const std::string &key) const;

private:
  std::string directory; // empty: no cache
};

} // namespace fagen

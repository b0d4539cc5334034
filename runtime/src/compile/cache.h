// fagen: compiled kernels on disk.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An entry is <directory>/<name>-<key>.bin: a head with a magic number, the key, the payload's length and its checksum,
// then the payload; and next to it <name>-<key>.cu, the source, for people and profilers. Whatever does not match its
// head is treated as absent, and rewritten by the compilation that follows. The checksum tells damage; that nobody else
// wrote the entry is asked of the directory and the file (private_directory.h).
#pragma once

#include "private_directory.h"

#include <string>
#include <string_view>
#include <vector>

namespace fagen {

/// 128 bits of XXH3 over parts, in hexadecimal; each part's length is hashed too, so no two lists of parts look alike.
std::string hashParts(const std::vector<std::string_view> &parts);

class Cache {
public:
  /// FAGEN_CACHE_DIR, else XDG_CACHE_HOME/fagen, else HOME/.cache/fagen, and `part` of it; none of them set: no cache.
  static Cache fromEnvironment(const std::string &part = "");
  /// A directory, or a part of it, which are both made where they are missing. An empty one: no cache.
  explicit Cache(const std::string &directory, const std::string &part = "");

  /// Why the directory that was named is not used; empty when it is.
  const std::string &refusal() const { return refused; }

  /// Fetches an entry's payload. False when there is none, it is damaged, or others can have written it.
  bool read(const std::string &name, const std::string &key, std::string &payload) const;

  /// Writes an entry. False with `error` set when that cannot be, without one when there is no cache.
  bool write(const std::string &name, const std::string &key, std::string_view source, std::string_view payload,
             std::string &error) const;

  /// Where an entry lies, without ".bin" or ".cu"; empty without a cache.
  std::string stem(const std::string &name, const std::string &key) const;

private:
  std::string refused; // first: the directory sets it
  PrivateDirectory directory;
};

} // namespace fagen

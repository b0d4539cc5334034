// fagen: compiled kernels on disk.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An entry is the library with its checksum behind it. It is written under a temporary name, synced and renamed, so
// that other processes see all of it or nothing; an entry whose checksum is wrong counts as missing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace fagen::emulator {

/// FNV-1a of 64 bits over strings, each ended by its length.
class Hash {
public:
  Hash &add(std::string_view text);
  uint64_t value() const { return state; }
  std::string hex() const;

private:
  uint64_t state = 0xcbf29ce484222325u;
};

/// $FAGEN_CACHE_DIR/emulator, else $XDG_CACHE_HOME/fagen/emulator, else ~/.cache/fagen/emulator; it exists on return.
/// Empty with `error` set when it cannot be made.
std::filesystem::path cacheDirectory(std::string &error);

std::optional<std::string> readFile(const std::filesystem::path &path);

/// Writes under a temporary name beside `path`, syncs and renames.
bool writeFile(const std::filesystem::path &path, std::string_view content, std::string &error);

/// Whether the checksum at the end of a sealed file is that of the content before.
bool isIntact(const std::filesystem::path &path);
/// Content with its checksum behind it.
std::string seal(std::string content);

} // namespace fagen::emulator

// fagen: files that a tool was asked to write.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "fagen/Output/OutputFile.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <random>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>
#include <utility>

namespace fagen {

namespace fs = std::filesystem;

static std::string failureOf(const std::string &path, const std::string &reason) {
  return "cannot write '" + path + "': " + reason;
}

// Links

static constexpr int kMostLinks = 40; ///< as Linux allows

/// The file that a path leads to through links, whether it is there or not. Gives an errno, or 0.
static int followLinks(const std::string &path, std::string &target) {
  fs::path at = path;
  for (int links = 0; links <= kMostLinks; ++links) {
    std::error_code code;
    const fs::path next = fs::read_symlink(at, code);
    if (code) { // no link; whether it is anything, a look at it tells
      target = at.string();
      return 0;
    }
    at = at.parent_path() / next; // an absolute one stands alone
  }
  return ELOOP;
}

static const char *describe(unsigned mode) {
  switch (mode & S_IFMT) {
  case S_IFDIR:
    return "it is a directory, not a file";
  case S_IFIFO:
    return "it is a FIFO, not a regular file";
  case S_IFSOCK:
    return "it is a socket, not a regular file";
  default:
    return "it is a device, not a regular file";
  }
}

// Bytes

/// Writes all of the text and closes the file. Gives an errno, or 0.
static int writeAndClose(int file, std::string_view text) {
  int code = 0;
  while (!text.empty() && code == 0) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written >= 0)
      text.remove_prefix(static_cast<size_t>(written));
    else if (errno != EINTR)
      code = errno;
  }
  if (::close(file) != 0 && code == 0)
    code = errno;
  return code;
}

/// Makes a new file in the directory, with a name that nothing there has. Gives its descriptor, or a negative errno.
static int makeTemporary(const fs::path &directory, std::string &name) {
  std::random_device random;
  for (;;) {
    char base[32];
    std::snprintf(base, sizeof base, ".fagen-%08x.tmp", random());
    name = (directory / base).string();
    const int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0)
      return file;
    if (const int code = errno; code != EEXIST)
      return -code;
  }
}

// Replacement

Replacement::Replacement(Replacement &&other) noexcept
    : path(std::move(other.path)), target(std::move(other.target)), temporary(std::exchange(other.temporary, {})),
      exists(other.exists), mode(other.mode), owner(other.owner), group(other.group) {}

Replacement::~Replacement() {
  if (!temporary.empty())
    ::unlink(temporary.c_str());
}

std::string Replacement::failure(int code) const { return failureOf(path, std::strerror(code)); }

std::string Replacement::check() {
  if (const int code = followLinks(path, target))
    return failure(code);
  struct stat there;
  if (::stat(target.c_str(), &there) != 0)
    return errno == ENOENT ? std::string() : failure(errno);
  if (!S_ISREG(there.st_mode))
    return failureOf(path, describe(there.st_mode));
  if (::access(target.c_str(), W_OK) != 0)
    return failure(errno);
  exists = true;
  mode = there.st_mode & 07777;
  owner = there.st_uid;
  group = there.st_gid;
  return {};
}

std::string Replacement::write(std::string_view text) {
  const int file = makeTemporary(fs::path(target).parent_path(), temporary);
  if (file < 0) {
    temporary.clear();
    return failure(-file);
  }
  if (exists) {
    std::ignore = ::fchown(file, owner, group); // only root gives files away
    if (::fchmod(file, mode) != 0) {
      const int code = errno;
      ::close(file);
      return failure(code);
    }
  }
  const int code = writeAndClose(file, text);
  return code == 0 ? std::string() : failure(code);
}

std::string Replacement::place() {
  if (::rename(temporary.c_str(), target.c_str()) != 0)
    return failure(errno);
  temporary.clear();
  return {};
}

// One file

/// Whether something is there that takes bytes without being a file.
static bool isStream(const std::string &path) {
  struct stat there;
  return ::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode);
}

std::string writeOutput(const std::string &path, std::string_view text) {
  if (isStream(path)) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    const int code = file < 0 ? errno : writeAndClose(file, text);
    return code == 0 ? std::string() : failureOf(path, std::strerror(code));
  }
  Replacement file(path);
  std::string problem = file.check();
  if (problem.empty())
    problem = file.write(text);
  if (problem.empty())
    problem = file.place();
  return problem;
}

} // namespace fagen

// fagen: a directory whose files nobody but this user can have written.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compile/private_directory.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace fagen {
namespace {

/// Who else can have changed a file or directory; null: nobody. A group with the user's own number is the user's alone:
/// systems that give each user such a group let it write to all that the user makes.
const char *otherWriter(const struct stat &status) {
  if (status.st_uid != geteuid() && status.st_uid != 0)
    return "belongs to another user";
  const bool isOwnGroup = status.st_gid == getegid() && status.st_gid == geteuid();
  if (status.st_mode & S_IWOTH || (status.st_mode & S_IWGRP && !isOwnGroup))
    return "can be written by other users";
  return nullptr;
}

bool writeAll(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(file, text.data(), text.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return false;
    text.remove_prefix(size_t(count));
  }
  return true;
}

/// Its missing parts are made for the user alone.
void makeDirectories(const std::filesystem::path &path) {
  if (path.has_parent_path() && path.parent_path() != path)
    if (struct stat status; stat(path.parent_path().c_str(), &status) != 0)
      makeDirectories(path.parent_path());
  mkdir(path.c_str(), 0700);
}

} // namespace

PrivateDirectory::PrivateDirectory(std::string path, std::string &error) : name(std::move(path)) {
  const auto refuse = [&](const char *why) {
    error = "cache directory '" + name + "': " + why + "; FAGEN_CACHE_DIR names another";
  };
  const int opened = [&] {
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    if (const int there = ::open(name.c_str(), flags); there >= 0 || errno != ENOENT)
      return there;
    makeDirectories(name);
    return ::open(name.c_str(), flags);
  }();
  struct stat status;
  if (opened < 0 || fstat(opened, &status) != 0)
    refuse(strerror(errno));
  else if (const char *why = otherWriter(status))
    refuse(why);
  else
    descriptor = opened;
  if (opened >= 0 && descriptor < 0)
    close(opened);
}

PrivateDirectory::~PrivateDirectory() {
  if (isOpen())
    close(descriptor);
}

PrivateDirectory::PrivateDirectory(PrivateDirectory &&other) noexcept
    : name(std::move(other.name)), descriptor(std::exchange(other.descriptor, -1)) {}

bool PrivateDirectory::read(const std::string &file, std::string &content) const {
  // Not blocking: a FIFO would wait for a writer.
  const int opened = isOpen() ? openat(descriptor, file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
  struct stat status;
  bool isRead = opened >= 0 && fstat(opened, &status) == 0 && S_ISREG(status.st_mode) && !otherWriter(status);
  content.clear();
  char buffer[65536];
  for (ssize_t count = 1; isRead && count != 0;) {
    count = ::read(opened, buffer, sizeof(buffer));
    isRead = count >= 0 || errno == EINTR;
    content.append(buffer, count > 0 ? size_t(count) : 0);
  }
  if (opened >= 0)
    close(opened);
  return isRead;
}

bool PrivateDirectory::write(const std::string &file, std::initializer_list<std::string_view> parts,
                             std::string &error) const {
  static std::atomic<unsigned> serial{0};
  const std::string temporary = file + "." + std::to_string(getpid()) + "." + std::to_string(serial++);
  const int opened = openat(descriptor, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  bool isWritten = opened >= 0;
  for (std::string_view part : parts)
    isWritten = isWritten && writeAll(opened, part);
  isWritten = isWritten && fsync(opened) == 0;
  if (opened >= 0)
    isWritten = close(opened) == 0 && isWritten;
  isWritten = isWritten && renameat(descriptor, temporary.c_str(), descriptor, file.c_str()) == 0;
  if (!isWritten) {
    error = "cannot write '" + name + "/" + file + "': " + strerror(errno);
    if (opened >= 0)
      unlinkat(descriptor, temporary.c_str(), 0);
  }
  return isWritten;
}

} // namespace fagen

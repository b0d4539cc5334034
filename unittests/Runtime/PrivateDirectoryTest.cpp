// fagen: whose directories and files are taken.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compile/cache.h"
#include "compile/private_directory.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace fagen;
namespace fs = std::filesystem;

namespace {

constexpr uid_t kSomebody = 12345;

struct PrivateDirectoryTest : testing::Test {
  fs::path directory;
  std::string error, content;
  PrivateDirectoryTest() {
    std::string name = fs::temp_directory_path() / "fagen-private-XXXXXX";
    directory = mkdtemp(name.data());
  }
  ~PrivateDirectoryTest() override { fs::remove_all(directory); }

  void put(const fs::path &path, const char *text = "theirs") { std::ofstream(path) << text; }
  bool isTaken(const fs::path &path) { return PrivateDirectory(path, error).isOpen(); }
  std::string refusal(const fs::path &path, const std::string &why) {
    return "cache directory '" + path.string() + "': " + why + "; FAGEN_CACHE_DIR names another";
  }
};

TEST_F(PrivateDirectoryTest, IsMadeForTheUserAlone) {
  const mode_t before = umask(0);
  EXPECT_TRUE(isTaken(directory / "a" / "b")) << error;
  umask(before);
  for (const char *made : {"a", "a/b"}) {
    struct stat status;
    ASSERT_EQ(stat((directory / made).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u) << made;
  }
}

TEST_F(PrivateDirectoryTest, FilesAreReplacedWhole) {
  const PrivateDirectory own(directory, error);
  ASSERT_TRUE(own.write("file", {"one ", "two"}, error)) << error;
  ASSERT_TRUE(own.read("file", content));
  EXPECT_EQ(content, "one two");
  fs::remove(directory / "file");
  put(directory / "elsewhere", "untouched");
  fs::create_symlink("elsewhere", directory / "file");
  ASSERT_TRUE(own.write("file", {"three"}, error)) << error; // in the link's place
  EXPECT_FALSE(fs::is_symlink(directory / "file"));
  ASSERT_TRUE(own.read("elsewhere", content));
  EXPECT_EQ(content, "untouched");
}

TEST_F(PrivateDirectoryTest, OthersCannotWriteToIt) {
  for (mode_t mode : {0777, 0757, 01777}) {
    ASSERT_EQ(chmod(directory.c_str(), mode), 0);
    EXPECT_FALSE(isTaken(directory));
    EXPECT_EQ(error, refusal(directory, "can be written by other users"));
  }
  ASSERT_EQ(chmod(directory.c_str(), 0755), 0);
  EXPECT_TRUE(isTaken(directory)) << error;
}

TEST_F(PrivateDirectoryTest, FilesThatOthersCanWriteAreNotRead) {
  const PrivateDirectory own(directory, error);
  put(directory / "file");
  ASSERT_EQ(chmod((directory / "file").c_str(), 0646), 0);
  EXPECT_FALSE(own.read("file", content));
  ASSERT_EQ(chmod((directory / "file").c_str(), 0644), 0);
  EXPECT_TRUE(own.read("file", content));
}

TEST_F(PrivateDirectoryTest, LinksAndWhatIsNoFileAreNotRead) {
  const PrivateDirectory own(directory, error);
  put(directory / "file");
  fs::create_symlink("file", directory / "link");
  fs::create_directory(directory / "directory");
  ASSERT_EQ(mkfifo((directory / "fifo").c_str(), 0600), 0);
  for (const char *name : {"link", "directory", "fifo", "missing"})
    EXPECT_FALSE(own.read(name, content)) << name;
}

TEST_F(PrivateDirectoryTest, WhatOthersOwnIsNotTaken) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can give files away";
  const fs::path theirs = directory / "theirs";
  fs::create_directory(theirs);
  put(theirs / "file");
  const PrivateDirectory own(theirs, error);
  ASSERT_EQ(chown((theirs / "file").c_str(), kSomebody, kSomebody), 0);
  EXPECT_FALSE(own.read("file", content));
  ASSERT_EQ(chown(theirs.c_str(), kSomebody, kSomebody), 0);
  EXPECT_FALSE(isTaken(theirs));
  EXPECT_EQ(error, refusal(theirs, "belongs to another user"));
  fs::create_directory_symlink(theirs, directory / "link"); // what a link leads to counts
  EXPECT_FALSE(isTaken(directory / "link"));
  const fs::path shared = directory / "shared"; // of a group of several users
  fs::create_directory(shared);
  ASSERT_EQ(chown(shared.c_str(), 0, kSomebody), 0);
  ASSERT_EQ(chmod(shared.c_str(), 0770), 0);
  EXPECT_FALSE(isTaken(shared));
}

/// Whoever owns the directory above may put another one in its place. What was opened stays what it was.
TEST_F(PrivateDirectoryTest, AnotherDirectoryUnderItsNameIsNotRead) {
  const PrivateDirectory own(directory / "cache", error);
  ASSERT_TRUE(own.write("file", {"ours"}, error)) << error;
  fs::rename(directory / "cache", directory / "moved");
  fs::create_directory(directory / "cache");
  put(directory / "cache" / "file");
  ASSERT_TRUE(own.read("file", content));
  EXPECT_EQ(content, "ours");
}

TEST_F(PrivateDirectoryTest, WhatCannotBeOpenedOrWrittenIsSaid) {
  put(directory / "file");
  EXPECT_FALSE(isTaken(directory / "file" / "below"));
  EXPECT_EQ(error, refusal(directory / "file" / "below", "Not a directory"));
  const PrivateDirectory own(directory, error);
  fs::create_directory(directory / "taken");
  EXPECT_FALSE(own.write("taken", {"x"}, error));
  EXPECT_EQ(error, "cannot write '" + directory.string() + "/taken': Is a directory");
  EXPECT_EQ(std::distance(fs::directory_iterator(directory), {}), 2); // nothing temporary
}

TEST_F(PrivateDirectoryTest, AFullDiskLeavesNothing) {
  const PrivateDirectory own(directory, error);
  struct rlimit before, small;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  small = before;
  small.rlim_cur = 1000;
  signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const bool isWritten = own.write("file", {std::string(5000, 'x')}, error);
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_DFL);
  EXPECT_FALSE(isWritten);
  EXPECT_EQ(error, "cannot write '" + directory.string() + "/file': File too large");
  EXPECT_TRUE(fs::is_empty(directory));
}

TEST_F(PrivateDirectoryTest, ACacheThatOthersCanWriteToIsNone) {
  const std::string key = hashParts({"key"});
  ASSERT_TRUE(Cache(directory).write("k", key, "source", "payload", error)) << error;
  EXPECT_TRUE(Cache(directory).read("k", key, content));
  ASSERT_EQ(chmod(directory.c_str(), 0777), 0);
  const Cache open(directory);
  EXPECT_EQ(open.refusal(), refusal(directory, "can be written by other users"));
  EXPECT_FALSE(open.read("k", key, content));
  EXPECT_FALSE(open.write("k", key, "source", "payload", error));
}

TEST_F(PrivateDirectoryTest, APartOfWhatOthersCanWriteToIsNone) {
  const std::string key = hashParts({"key"});
  ASSERT_TRUE(Cache(directory, "part").write("k", key, "source", "payload", error)) << error; // the part is the user's
  ASSERT_EQ(chmod(directory.c_str(), 0777), 0);
  const Cache open(directory, "part");
  EXPECT_EQ(open.refusal(), refusal(directory, "can be written by other users"));
  EXPECT_FALSE(open.read("k", key, content));
  EXPECT_FALSE(open.write("k", key, "source", "payload", error));
}

TEST_F(PrivateDirectoryTest, WithoutAPlaceThereIsNoCache) {
  std::map<const char *, std::string> before;
  for (const char *name : {"FAGEN_CACHE_DIR", "XDG_CACHE_HOME", "HOME"})
    if (const char *value = getenv(name)) {
      before[name] = value;
      unsetenv(name);
    }
  const Cache none = Cache::fromEnvironment("emulator");
  EXPECT_EQ(none.refusal(), "");
  EXPECT_EQ(none.stem("k", "key"), "");
  EXPECT_FALSE(none.read("k", hashParts({"key"}), content));
  setenv("HOME", directory.c_str(), 1);
  EXPECT_EQ(Cache::fromEnvironment("emulator").stem("k", "key"), directory.string() + "/.cache/fagen/emulator/k-key");
  setenv("XDG_CACHE_HOME", directory.c_str(), 1);
  EXPECT_EQ(Cache::fromEnvironment().stem("k", "key"), directory.string() + "/fagen/k-key");
  setenv("FAGEN_CACHE_DIR", directory.c_str(), 1);
  EXPECT_EQ(Cache::fromEnvironment("emulator").stem("k", "key"), directory.string() + "/emulator/k-key");
  for (const char *name : {"FAGEN_CACHE_DIR", "XDG_CACHE_HOME", "HOME"})
    before.count(name) ? setenv(name, before[name].c_str(), 1) : unsetenv(name);
}

} // namespace

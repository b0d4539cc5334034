// fagen: runs another program and reads what it says, line by line.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "child_process.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fagen::lab {

static constexpr size_t kKeptErrors = 8192;

namespace {

/// A pipe; the reading end is ours, the writing end the child's.
class Pipe {
public:
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) // children of other threads must not keep it open
      throw std::runtime_error("no pipe for a child process");
  }
  ~Pipe() {
    closeEnd(0);
    closeEnd(1);
  }
  Pipe(const Pipe &) = delete;
  Pipe &operator=(const Pipe &) = delete;
  int reading() const { return ends[0]; }
  int writing() const { return ends[1]; }
  void closeWriting() { closeEnd(1); }

private:
  void closeEnd(int index) {
    if (ends[index] >= 0)
      close(ends[index]);
    ends[index] = -1;
  }
  int ends[2] = {-1, -1};
};

/// Only calls that are safe between fork and exec.
[[noreturn]] void becomeChild(char *const *arguments, const Pipe &output, const Pipe &errors) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(output.writing(), STDOUT_FILENO);
  dup2(errors.writing(), STDERR_FILENO);
  execvp(arguments[0], arguments);
  _exit(kNotStarted);
}

/// Gives whole lines to `onLine`; keeps what is left.
void splitLines(std::string &text, const std::function<void(const std::string &)> &onLine) {
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    onLine(text.substr(begin, end - begin));
  text.erase(0, begin);
}

/// False at the end of the file.
bool readSome(int descriptor, std::string &into) {
  char buffer[4096];
  ssize_t count = read(descriptor, buffer, sizeof buffer);
  if (count > 0)
    into.append(buffer, static_cast<size_t>(count));
  return count > 0 || (count < 0 && errno == EINTR);
}

} // namespace

ChildOutcome runChild(const std::vector<std::string> &arguments, double seconds,
                      const std::function<void(const std::string &line)> &onLine) {
  std::vector<char *> words;
  for (const std::string &argument : arguments)
    words.push_back(const_cast<char *>(argument.c_str()));
  words.push_back(nullptr);
  Pipe output, errors;
  pid_t child = fork();
  if (child < 0)
    throw std::runtime_error("cannot start a child process");
  if (child == 0)
    becomeChild(words.data(), output, errors);
  output.closeWriting();
  errors.closeWriting();

  using Clock = std::chrono::steady_clock;
  auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  ChildOutcome outcome;
  std::string lines;
  pollfd watched[] = {{output.reading(), POLLIN, 0}, {errors.reading(), POLLIN, 0}};
  while (watched[0].fd >= 0 || watched[1].fd >= 0) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (seconds > 0 && left <= 0) {
      outcome.timedOut = true;
      kill(child, SIGKILL);
      break;
    }
    if (poll(watched, 2, seconds > 0 ? static_cast<int>(left) + 1 : -1) <= 0)
      continue;
    if (watched[0].revents && !readSome(watched[0].fd, lines))
      watched[0].fd = -1;
    if (watched[1].revents && !readSome(watched[1].fd, outcome.errors))
      watched[1].fd = -1;
    splitLines(lines, onLine);
    if (outcome.errors.size() > kKeptErrors)
      outcome.errors.erase(0, outcome.errors.size() - kKeptErrors);
  }
  if (!lines.empty())
    onLine(lines);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  outcome.exitCode = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  outcome.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return outcome;
}

} // namespace fagen::lab

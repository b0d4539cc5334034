// fagen: a process that times candidates for this one.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "worker.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fagen::lab::tune {

static constexpr double kStartSeconds = 120; ///< a GPU may have to be woken

void Worker::start() {
  int requests[2], answers[2];
  if (pipe2(requests, O_CLOEXEC) != 0 || pipe2(answers, O_CLOEXEC) != 0)
    throw std::runtime_error("no pipe for a child process");
  std::string executable = std::filesystem::read_symlink("/proc/self/exe").string();
  const char *words[] = {executable.c_str(), "tune-worker", "--device", device.c_str(), nullptr};
  child = fork();
  if (child == 0) { // only calls that are safe between fork and exec
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(requests[0], STDIN_FILENO);
    dup2(answers[1], STDOUT_FILENO);
    execv(words[0], const_cast<char *const *>(words));
    _exit(127);
  }
  close(requests[0]);
  close(answers[1]);
  toChild = requests[1];
  fromChild = answers[0];
  pending.clear();
  if (child < 0)
    throw std::runtime_error("cannot start a child process");
  Reply reply;
  if (readLine(kStartSeconds, reply).empty())
    throw UserError(fmt::format("the process that times candidates did not start: {}", reply.why));
}

void Worker::end() {
  if (child < 0)
    return;
  kill(child, SIGKILL);
  buryChild();
}

/// Closes the pipes and says how the process ended.
Reply Worker::buryChild() {
  close(toChild);
  close(fromChild);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  child = -1;
  if (WIFSIGNALED(status))
    return {{}, "crashed", fmt::format("signal {}", WTERMSIG(status))};
  return {{}, "failed", fmt::format("exit code {}", WEXITSTATUS(status))};
}

std::string Worker::readLine(double seconds, Reply &reply) {
  using Clock = std::chrono::steady_clock;
  auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  size_t end;
  while ((end = pending.find('\n')) == std::string::npos) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      kill(child, SIGKILL);
      buryChild();
      reply = {{}, "hung", fmt::format("no end after {:g} s", seconds)};
      return {};
    }
    pollfd watched{fromChild, POLLIN, 0};
    if (poll(&watched, 1, static_cast<int>(left) + 1) <= 0)
      continue;
    char buffer[4096];
    ssize_t count = read(fromChild, buffer, sizeof buffer);
    if (count > 0) {
      pending.append(buffer, static_cast<size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      reply = buryChild();
      return {};
    }
  }
  std::string line = pending.substr(0, end);
  pending.erase(0, end + 1);
  return line;
}

Reply Worker::ask(const Json &request, double seconds) {
  if (child < 0)
    start();
  std::string text = request.dump() + '\n';
  for (size_t sent = 0; sent < text.size();) {
    ssize_t count = write(toChild, text.data() + sent, text.size() - sent); // SIGPIPE is ignored: tune.cpp
    if (count < 0 && errno != EINTR)
      return buryChild();
    sent += static_cast<size_t>(std::max<ssize_t>(count, 0));
  }
  Reply reply;
  std::string line = readLine(seconds, reply);
  if (!reply.ending.empty())
    return reply;
  reply.json = Json::parse(line, nullptr, false);
  if (reply.json.is_discarded() || !reply.json.contains("results")) {
    std::string why = !reply.json.is_object() ? "no answer but noise" : reply.json.value("lost", "no answer");
    end();
    return {{}, "crashed", why};
  }
  return reply;
}

} // namespace fagen::lab::tune

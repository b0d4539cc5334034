// fagen: a process that times candidates for this one, ended when one hangs, begun again when one crashed it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lab/support/text_table.h"
#include "lab/support/user_error.h"

#include <string>
#include <sys/types.h>

namespace fagen::lab::tune {

/// How a request ended.
struct Reply {
  Json json;          ///< of serve.h; null unless it was answered
  std::string ending; ///< hung, crashed, failed; empty: answered
  std::string why;
};

class Worker {
public:
  /// `device` as --device has it.
  explicit Worker(std::string device) : device(std::move(device)) {}
  ~Worker() { end(); }
  Worker(const Worker &) = delete;
  Worker &operator=(const Worker &) = delete;

  /// Starts the process when there is none; UserError when it does not start.
  Reply ask(const Json &request, double seconds);

private:
  void start();
  void end();
  /// A whole line within the time; else "" with the reply's ending set, and the process is gone.
  std::string readLine(double seconds, Reply &reply);
  Reply buryChild();

  std::string device, pending;
  pid_t child = -1;
  int toChild = -1, fromChild = -1;
};

} // namespace fagen::lab::tune

// fagen: files of JSON that a command reads.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "json_file.h"

#include "fagen/Support/JsonNesting.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sstream>

namespace fagen::lab {

std::string readText(const std::string &file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    throw UserError(fmt::format("cannot read {}: it is a directory", file));
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  if (!stream || (stream.peek() != std::ifstream::traits_type::eof() && !(text << stream.rdbuf())) || stream.bad())
    throw UserError(fmt::format("cannot read {}{}{}", file, errno ? ": " : "", errno ? std::strerror(errno) : ""));
  return text.str();
}

template <class Any> Any parseText(const std::string &text) {
  if (const std::optional<size_t> line = lineNestedTooDeep(text))
    throw NoJson(fmt::format("line {} nests deeper than {} values", *line, kMostNestedJson));
  try {
    return Any::parse(text);
  } catch (const nlohmann::json::exception &error) {
    throw NoJson(reasonOf(error));
  }
}
template nlohmann::json parseText<nlohmann::json>(const std::string &text);
template Json parseText<Json>(const std::string &text);

std::string printed(const Json &json) { return json.dump(1, ' ', false, Json::error_handler_t::replace); }

std::string reasonOf(const nlohmann::json::exception &error) {
  const std::string what = error.what(); // "[json.exception.parse_error.101] parse error at line 1, ..."
  const size_t end = what.find("] ");
  return end == std::string::npos ? what : what.substr(end + 2);
}

} // namespace fagen::lab

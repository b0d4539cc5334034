// fagen: files of JSON that a command reads: what is wrong with one is the user's to mend, and told with the file.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "text_table.h"
#include "user_error.h"

#include <utility>

namespace fagen::lab {

/// The bytes of a file. UserError with the reason when it cannot be read.
std::string readText(const std::string &file);

/// Of a text, not of what stands in it.
struct NoJson : UserError {
  using UserError::UserError;
};

/// The JSON of a text, of nlohmann's types. NoJson for a text that is none, or nests deeper than 64 values: copies and
/// prints call themselves for each level.
template <class Any = Json> Any parseText(const std::string &text);
extern template nlohmann::json parseText<nlohmann::json>(const std::string &text);
extern template Json parseText<Json>(const std::string &text);

/// As it is printed: indented, and whatever is not UTF-8 replaced.
std::string printed(const Json &json);

/// What the library's error says, without its number.
std::string reasonOf(const nlohmann::json::exception &error);

/// What `read` makes of a file's JSON. UserError that names the file for one that cannot be read, that is no JSON, and
/// that lacks what `read` asks for ("FILE is not WHAT: key 'us' not found") or refuses by a UserError.
template <class Any = Json, class Read> auto readJsonFile(const std::string &file, const std::string &what, Read read) {
  Any json;
  try {
    json = parseText<Any>(readText(file));
  } catch (const NoJson &error) {
    throw UserError(file + " is not " + what + ": " + error.what());
  }
  try {
    return read(std::as_const(json));
  } catch (const nlohmann::json::exception &error) {
    throw UserError(file + " is not " + what + ": " + reasonOf(error));
  } catch (const UserError &error) {
    throw UserError(file + ": " + error.what());
  }
}

} // namespace fagen::lab

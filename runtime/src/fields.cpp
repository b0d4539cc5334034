// fagen: a value of a JSON file that knows where it stands.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "fields.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace fagen {

std::string readWholeFile(const std::string &path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    throw FieldError("cannot read " + path + ": " + (error ? error.message() : "not a file"));
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || (text.str().empty() && !std::filesystem::is_empty(path, error)))
    throw FieldError("cannot read " + path + ": " + strerror(errno));
  return text.str();
}

Json readJsonFile(const std::string &path) {
  constexpr size_t kMost = size_t(32) << 20; // the largest kernel sets have some MiB
  const std::string text = readWholeFile(path);
  if (text.size() > kMost)
    throw FieldError(path + " has " + std::to_string(text.size()) + " B; at most 32 MiB are read");
  try {
    return parseJson(text);
  } catch (const JsonError &error) {
    throw FieldError(path + ":" + std::to_string(error.line) + ": is not JSON: it " + error.what());
  }
}

void Field::fail(const std::string &what) const {
  throw FieldError(file + ":" + std::to_string(value.line) + ": " + path + (path.empty() ? "" : " ") + what +
                   (remedy.empty() ? "" : "; " + remedy));
}

Field Field::operator[](const char *key) const {
  std::string name = path.empty() ? key : path + "." + key;
  const Json *found = value.find(key);
  if (!found)
    Field(*this, value, name).fail("is missing");
  return {*this, *found, name};
}

std::vector<Field> Field::items() const {
  if (value.kind != Json::List)
    fail("is not a list");
  std::vector<Field> fields;
  fields.reserve(value.items.size());
  for (size_t i = 0; i < value.items.size(); ++i)
    fields.push_back({*this, value.items[i], path + "[" + std::to_string(i) + "]"});
  return fields;
}

const std::vector<std::string> &Field::keys() const {
  if (value.kind != Json::Object)
    fail("is not an object");
  return value.keys;
}

const std::string &Field::text() const {
  if (!isText())
    fail("is not text");
  return value.text;
}

int64_t Field::integer() const {
  if (value.kind != Json::Whole && value.kind != Json::Boolean)
    fail("is not a whole number");
  return value.whole;
}

double Field::decimal() const {
  if (value.kind != Json::Whole && value.kind != Json::Decimal)
    fail("is not a number");
  return value.decimal;
}

} // namespace fagen

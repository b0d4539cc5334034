// fagen: a value of a JSON file that knows where it stands.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "field.h"

#include "lab/support/json_file.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sstream>

namespace fagen::lab::page {

std::string readInput(const std::string &file, const std::string &remedy) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    throw UserError(fmt::format("{} is a directory, not a file; {}", file, remedy));
  std::ifstream stream(file, std::ios::binary);
  if (!stream)
    throw UserError(fmt::format("cannot read {}: {}; {}", file, std::strerror(errno), remedy));
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

Field Field::read(const std::string &file, const std::string &remedy) {
  auto source = std::make_shared<Source>(Source{file, remedy, {}});
  const std::string text = readInput(file, remedy);
  try {
    source->json = parseText(text);
  } catch (const NoJson &error) {
    throw UserError(fmt::format("{} is not JSON: {}; {}", file, error.what(), remedy));
  }
  const Json &json = source->json;
  return {source, json, ""};
}

void Field::fail(const std::string &what) const {
  throw UserError(fmt::format("{}: {}{}{}; {}", source->file, path, path.empty() ? "it " : " ", what, source->remedy));
}

bool Field::has(const std::string &key) const {
  return value->is_object() && value->contains(key) && !value->at(key).is_null();
}

Field Field::operator[](const std::string &key) const {
  const std::string name = path.empty() ? key : path + "." + key;
  if (!value->is_object() || !value->contains(key))
    Field(source, *value, name).fail("is missing");
  return {source, value->at(key), name};
}

std::vector<Field> Field::items() const {
  if (!value->is_array())
    fail("is not a list");
  std::vector<Field> fields;
  for (size_t i = 0; i < value->size(); ++i)
    fields.push_back({source, (*value)[i], fmt::format("{}[{}]", path, i)});
  return fields;
}

std::vector<std::pair<std::string, Field>> Field::members() const {
  if (!value->is_object())
    fail("is not an object");
  std::vector<std::pair<std::string, Field>> fields;
  for (const auto &[key, member] : value->items())
    fields.push_back({key, (*this)[key]});
  return fields;
}

double Field::number() const {
  if (!value->is_number())
    fail("is not a number");
  const auto number = value->get<double>();
  if (std::abs(number) > kMostNumber)
    fail(fmt::format("is {:g}; numbers up to {:g} are read", number, kMostNumber));
  return number;
}

std::string Field::text() const {
  if (!value->is_string())
    fail("is not text");
  return value->get<std::string>();
}

bool Field::truth() const {
  if (!value->is_boolean())
    fail("is not true or false");
  return value->get<bool>();
}

double Field::numberOr(const std::string &key, double otherwise) const {
  return has(key) ? (*this)[key].number() : otherwise;
}

std::string Field::textOr(const std::string &key, const std::string &otherwise) const {
  return has(key) ? (*this)[key].text() : otherwise;
}

} // namespace fagen::lab::page

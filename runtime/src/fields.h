// fagen: a value of a JSON file that knows where it stands: "manifest.json:31: rows[3].launches[0].threads is missing".
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "json.h"

#include <limits>

namespace fagen {

/// A file that cannot be read or does not say what it must.
struct FieldError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A file's text. FieldError when it cannot be read.
std::string readWholeFile(const std::string &path);

/// A JSON file, parsed. FieldError with the line for what is not JSON.
Json readJsonFile(const std::string &path);

/// Each question that has no answer throws FieldError with file, line, path in the file, and `remedy`.
class Field {
public:
  Field(const std::string &file, const Json &value, const std::string &remedy)
      : file(file), value(value), remedy(remedy) {}

  [[noreturn]] void fail(const std::string &what) const;

  bool has(const char *key) const { return value.find(key) != nullptr; }
  Field operator[](const char *key) const;
  std::vector<Field> items() const;
  size_t count() const { return value.items.size(); }
  const std::vector<std::string> &keys() const; ///< of an object

  bool isText() const { return value.kind == Json::Text; }
  const std::string &text() const;
  int64_t integer() const; ///< a whole number; 0 or 1 of a boolean
  double decimal() const;

  template <class T = uint32_t> T number(T most = std::numeric_limits<T>::max()) const {
    const int64_t whole = integer();
    if (whole < 0 || whole > int64_t(most))
      fail("is " + std::to_string(whole) + ", not a number from 0 to " + std::to_string(most));
    return static_cast<T>(whole);
  }

private:
  Field(const Field &parent, const Json &value, std::string path)
      : file(parent.file), value(value), remedy(parent.remedy), path(std::move(path)) {}

  const std::string &file;
  const Json &value;
  const std::string &remedy;
  std::string path;
};

} // namespace fagen

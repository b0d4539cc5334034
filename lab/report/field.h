// fagen: a value of a JSON file that knows where it stands, so that what is wrong with it can be told.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lab/support/text_table.h"
#include "lab/support/user_error.h"

#include <memory>
#include <string>
#include <vector>

namespace fagen::lab::page {

/// What is larger is damage: times, counts and rates are not, and products of such numbers stay finite.
inline constexpr double kMostNumber = 1e30;

class Field {
public:
  /// Reads a file. UserError with the file, the reason, and `remedy`: what writes such a file. So do all errors below.
  static Field read(const std::string &file, const std::string &remedy);

  Field operator[](const std::string &key) const; ///< must be there
  /// Whether there is one, and not null.
  bool has(const std::string &key) const;
  std::vector<Field> items() const;
  std::vector<std::pair<std::string, Field>> members() const; ///< of an object
  double number() const;                                      ///< at most kMostNumber
  std::string text() const;
  bool truth() const;
  const Json &raw() const { return *value; }

  double numberOr(const std::string &key, double otherwise) const;
  std::string textOr(const std::string &key, const std::string &otherwise) const;
  bool isTrue(const std::string &key) const { return has(key) && (*this)[key].truth(); }

  const std::string &file() const { return source->file; }
  [[noreturn]] void fail(const std::string &what) const;

private:
  struct Source {
    std::string file, remedy;
    Json json;
  };
  Field(std::shared_ptr<const Source> source, const Json &value, std::string path)
      : source(std::move(source)), value(&value), path(std::move(path)) {}

  std::shared_ptr<const Source> source;
  const Json *value;
  std::string path;
};

/// The text of a file; UserError as Field::read.
std::string readInput(const std::string &file, const std::string &remedy);

} // namespace fagen::lab::page

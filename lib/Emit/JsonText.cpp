// fagen: JSON values as text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "JsonText.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

static constexpr unsigned kIndent = 2;
/// Up to here a whole number has the same text whether it is kept as an integer or as a floating-point number.
static constexpr int64_t kMostDigits = 999'999'999'999'999;

static void appendQuoted(std::string &text, StringRef string) {
  text += '"';
  for (const char c : string) {
    if (c == '"' || c == '\\')
      text += '\\';
    text += c;
  }
  text += '"';
}

/// What needs more than quotes and backslashes, and numbers that are not whole.
static void appendByStream(std::string &text, const json::Value &value) {
  raw_string_ostream os(text);
  json::OStream(os).value(value);
}

static void beginLine(std::string &text, unsigned column) {
  text += '\n';
  text.append(column, ' ');
}

/// `appendItem` for each, with commas between.
template <typename Range, typename Append>
static void appendItems(std::string &text, const char *brackets, unsigned column, Range &&items, Append appendItem) {
  text += brackets[0];
  bool isFirst = true;
  for (const auto &item : items) {
    if (!std::exchange(isFirst, false))
      text += ',';
    beginLine(text, column + kIndent);
    appendItem(item);
  }
  if (!isFirst)
    beginLine(text, column);
  text += brackets[1];
}

static void appendObject(std::string &text, const json::Object &object, unsigned column) {
  SmallVector<const json::Object::value_type *, 32> entries;
  for (const json::Object::value_type &entry : object)
    entries.push_back(&entry);
  llvm::sort(entries, [](const auto *a, const auto *b) { return a->first < b->first; });
  appendItems(text, "{}", column, entries, [&](const json::Object::value_type *entry) {
    appendQuoted(text, entry->first);
    text += ": ";
    fagen::appendJson(text, entry->second, column + kIndent);
  });
}

void fagen::appendJson(std::string &text, const json::Value &value, unsigned column) {
  if (const json::Object *object = value.getAsObject())
    return appendObject(text, *object, column);
  if (const json::Array *array = value.getAsArray())
    return appendItems(text, "[]", column, *array,
                       [&](const json::Value &item) { appendJson(text, item, column + kIndent); });
  const std::optional<StringRef> string = value.getAsString();
  if (string && llvm::none_of(*string, [](char c) { return uint8_t(c) < 0x20; }))
    return appendQuoted(text, *string);
  const std::optional<int64_t> integer = value.getAsInteger();
  if (!integer || *integer <= 0 || *integer > kMostDigits)
    return appendByStream(text, value);
  text += std::to_string(*integer);
}

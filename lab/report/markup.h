// fagen: elements of HTML and SVG as text. All of it is well-formed XML too.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fagen::lab::page {

/// Text for content or an attribute: markup characters are escaped, control characters become spaces, and bytes that
/// are no UTF-8 U+FFFD.
std::string escaped(std::string_view text);

struct Attribute {
  std::string_view name;
  std::string value; ///< not yet escaped
};

/// `<name a="b">content</name>`; content is markup. Without content the element closes itself.
std::string element(std::string_view name, const std::vector<Attribute> &attributes, std::string_view content = "");
/// The same around plain text, which it escapes.
std::string textElement(std::string_view name, const std::vector<Attribute> &attributes, std::string_view text);

/// A coordinate: tenths of a pixel. std::logic_error when it is no finite number: a chart must not hide one.
std::string pixels(double value);

} // namespace fagen::lab::page

// fagen: what all parts of a report are made of.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "section.h"
#include "lab/cases/problem.h"

#include <fmt/format.h>

namespace fagen::lab::page {

Section missingSection(const std::string &id, const std::string &heading, const std::string &command) {
  return {id,
          heading,
          "missing; " + command,
          element("p", {{"class", "missing"}},
                  "Nothing was given for this part. " + textElement("code", {}, command) + " writes it."),
          {},
          true};
}

std::string HtmlTable::markup() const {
  const auto row = [&](const char *cell, const std::vector<std::string> &texts) {
    std::string cells;
    for (size_t i = 0; i < texts.size(); ++i) {
      std::vector<Attribute> attributes;
      if (std::string_view(cell) == "th")
        attributes.push_back({"scope", "col"});
      if (columns[i].right)
        attributes.push_back({"class", "number"});
      cells += fmt::format("{}", element(cell, attributes, texts[i].empty() ? " " : escaped(texts[i])));
    }
    return element("tr", {}, cells) + "\n";
  };
  std::vector<std::string> heads;
  for (const Column &column : columns)
    heads.push_back(column.head);
  std::string body;
  for (const auto &cells : rows)
    body += row("td", cells);
  return element("div", {{"class", "scroll"}},
                 element("table", {},
                         "\n" + textElement("caption", {}, caption) + "\n" + element("thead", {}, row("th", heads)) +
                             "\n" + element("tbody", {}, "\n" + body) + "\n")) +
         "\n";
}

std::string sideBySide(const Chart &chart, const std::string &table) {
  return element("div", {{"class", "pair"}}, "\n" + element("figure", {}, chart.body) + "\n" + table) + "\n";
}

std::string paragraph(const std::string &text, const std::string &style) {
  return textElement("p", style.empty() ? std::vector<Attribute>{} : std::vector<Attribute>{{"class", style}}, text) +
         "\n";
}

std::string bullets(const std::vector<std::string> &texts, const std::string &style) {
  if (texts.empty())
    return "";
  std::string items;
  for (const std::string &text : texts)
    items += textElement("li", {}, text) + "\n";
  return element("ul", style.empty() ? std::vector<Attribute>{} : std::vector<Attribute>{{"class", style}},
                 "\n" + items) +
         "\n";
}

std::string provenance(const Field &result) {
  std::string text = result.file();
  const auto add = [&](const std::string &what) {
    if (!what.empty())
      text += ", " + what;
  };
  if (result.has("machine")) {
    const Field machine = result["machine"];
    add(machine.has("gpu") ? machine["gpu"].text() : machine.textOr("cpu", ""));
    if (machine.has("driver_cuda"))
      add("driver for CUDA " + machine["driver_cuda"].text());
    if (machine.has("nvrtc"))
      add("NVRTC " + machine["nvrtc"].text());
  }
  add(result.textOr("tool", ""));
  if (result.has("notes") && result["notes"].raw().is_object())
    for (const auto &[key, value] : result["notes"].members())
      add(key + " " + value.text());
  return paragraph(text, "source");
}

std::string counted(size_t count, const std::string &what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string problemText(const std::string &shape) {
  Shape s;
  try {
    s = parseShape(shape);
  } catch (const UserError &) {
    return shape;
  }
  std::string text = fmt::format("B {}, H {}", s.batch, s.heads);
  if (s.kvHeads != s.heads)
    text += fmt::format("/{}", s.kvHeads);
  text += s.seqQ == s.seqKv ? fmt::format(", S {}", s.seqQ) : fmt::format(", S {} x {}", s.seqQ, s.seqKv);
  text += fmt::format(", d {}", s.headDimQK);
  return s.headDimV == s.headDimQK ? text : text + fmt::format(":{}", s.headDimV);
}

} // namespace fagen::lab::page

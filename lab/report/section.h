// fagen: the parts of a report: each made of what one command wrote.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "canvas.h"
#include "field.h"

namespace fagen::lab::page {

struct Section {
  std::string id, heading;
  std::string summary; ///< "4 problems, 12 contestants"; what would write it when it is missing
  std::string body;    ///< markup
  std::vector<Chart> charts;
  bool isMissing = false;
};

/// A section without input: it says which command would write one.
Section missingSection(const std::string &id, const std::string &heading, const std::string &command);

/// Each reads the files and makes its section; UserError for a file that is not what the command writes.
Section timesSection(const std::vector<std::string> &files);
Section rooflineSection(const std::vector<std::string> &files);
Section breakdownSection(const std::vector<std::string> &files);
Section tuningSection(const std::vector<std::string> &directories);
Section resourcesSection(const std::vector<std::string> &files);
Section gatesSection(const std::vector<std::string> &files);

/// A table with a head; the cells are plain text.
class HtmlTable {
public:
  struct Column {
    std::string head;
    bool right = false;
  };
  HtmlTable(std::string caption, std::vector<Column> columns)
      : caption(std::move(caption)), columns(std::move(columns)) {}
  void add(std::vector<std::string> cells) { rows.push_back(std::move(cells)); }
  bool empty() const { return rows.empty(); }
  std::string markup() const;

private:
  std::string caption;
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

/// A chart with its table next to it, or below where there is no room.
std::string sideBySide(const Chart &chart, const std::string &table);
std::string paragraph(const std::string &text, const std::string &style = "");
std::string bullets(const std::vector<std::string> &texts, const std::string &style = "");
/// What the head of a result says of itself: file, GPU or CPU, versions, notes.
std::string provenance(const Field &result);
/// "1 problem", "2 problems".
std::string counted(size_t count, const std::string &what);
/// "1,8,8,512,512,64" as "B 1, H 8, S 512, d 64"; what is no shape stays as it is.
std::string problemText(const std::string &shape);

} // namespace fagen::lab::page

// fagen: fagen-run report: what the other commands wrote, as one HTML file.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Command.h"
#include "lab/report/page.h"
#include "lab/support/json_file.h"
#include "lab/support/write_file.h"

#include <filesystem>
#include <fmt/format.h>
#include <iostream>

namespace fagen::lab {

namespace {

constexpr const char *kReportFooter = R"(
Inputs are what the other commands wrote with --output (tune: --evidence; fagen: --check-resources). Each option takes
several files; a part without input says which command writes one. docs/Report.md shows and explains the page.

Example:
  fagen-run time generated/l4_fp16 --grid --baseline sdpa --output times.json
  fagen-run gate generated/l4_fp16 --output gates.json
  fagen-run report --times times.json --gates gates.json -o report.html)";

class ReportCommand : public Command {
public:
  ReportCommand() : Command("report", "one HTML file of times, roofline, breakdown, tuning, resources, gates", false) {}

  void addOptions(CLI::App &app) override {
    app.add_option("--times", inputs.times, "of fagen-run time");
    app.add_option("--profile", inputs.profiles, "of fagen-run profile: the roofline");
    app.add_option("--breakdown", inputs.breakdowns, "of fagen-run breakdown");
    app.add_option("--tune", inputs.tunings, "directories of fagen-run tune --evidence");
    app.add_option("--resources", inputs.resources, "resources.json of fagen --check-resources");
    app.add_option("--gates", inputs.gates, "of fagen-run gate");
    app.add_option("--title", title, "of the page")->capture_default_str();
    app.add_option("--charts", chartDirectory, "also write each chart as an SVG file into this directory");
    app.remove_option(app.get_option("--output")); // of the other commands: JSON
    app.add_option("-o,--output", output, "the HTML file")->required();
    app.footer(kReportFooter);
  }

  int run() override {
    Json summary = envelope(nullptr);
    std::vector<std::string> remarks;
    for (const std::string &note : notes)
      remarks.push_back(note);
    const std::vector<page::Section> sections = page::sectionsOf(inputs);
    TextTable table({{"part"}, {"charts", true}, {"content"}});
    for (const page::Section &section : sections) {
      table.add({section.heading, std::to_string(section.charts.size()), section.summary});
      summary["report"].push_back({{"part", section.id},
                                   {"missing", section.isMissing},
                                   {"charts", section.charts.size()},
                                   {"content", section.summary}});
    }
    if (json)
      std::cout << printed(summary) << '\n';
    else
      std::cout << table.text() << output << '\n';
    flushStandardOutput();
    writeFile(output, page::pageOf(title, remarks, sections));
    if (!chartDirectory.empty())
      writeCharts(sections);
    return kOk;
  }

private:
  void writeCharts(const std::vector<page::Section> &sections) const {
    makeDirectory(chartDirectory);
    for (const page::Section &section : sections)
      for (const page::Chart &chart : section.charts)
        writeFile((std::filesystem::path(chartDirectory) / (chart.id + ".svg")).string(), chart.standalone());
  }

  page::Inputs inputs;
  std::string title = "fagen report", chartDirectory;
};

} // namespace

std::unique_ptr<Command> makeReportCommand() { return std::make_unique<ReportCommand>(); }

} // namespace fagen::lab

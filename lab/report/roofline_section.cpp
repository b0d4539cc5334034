// fagen: the report's roofline: how far kernels are from what the GPU allows, and what holds them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/cases/problem.h"
#include "lab/profile/roofline.h"
#include "roofline_chart.h"
#include "section.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

namespace fagen::lab::page {

static constexpr const char *kRooflineRemedy = "fagen-run profile DIR --output FILE writes such a file";

namespace {

/// A launch as the profile tells it; what is not told is absent.
struct Kernel {
  std::string label;
  double flops; ///< as fagen-run time counts them
  std::optional<double> microseconds, floorMicros, tensorMicros, dramMicros, dramBytes, gigabytes;
  std::string limit, verdict, why, stall, source;
  std::vector<std::pair<std::string, double>> figures;

  bool hasPoint() const { return microseconds && floorMicros && tensorMicros && dramMicros && gigabytes; }
  Roof roof() const { return {flops / *tensorMicros / 1e6, *gigabytes}; }
  RooflinePoint point() const {
    return {label, flops, *dramMicros * *gigabytes * 1e3, dramBytes.value_or(0), *floorMicros, *microseconds};
  }
};

/// Above 0, or nothing.
std::optional<double> positive(const Field &object, const std::string &key) {
  const double value = object.numberOr(key, 0);
  return value > 0 ? std::optional<double>(value) : std::nullopt;
}

std::optional<double> times(std::optional<double> a, std::optional<double> b, double factor) {
  return a && b ? std::optional<double>(*a * *b * factor) : std::nullopt;
}

void readFigures(const Field &figures, Kernel &kernel) {
  if (const auto nanoseconds = positive(figures, "duration"))
    kernel.microseconds = *nanoseconds / 1e3;
  kernel.dramBytes = positive(figures, "dram_bytes");
  kernel.gigabytes = times(positive(figures, "dram_peak"), positive(figures, "dram_clock"), 1e-9);
  for (const auto &[name, value] : figures.members())
    kernel.figures.push_back({name, value.number()});
}

/// The state that warps are in most of all, of those in which they wait.
std::string leadingStall(const Field &profile) {
  std::string reason = "-";
  double most = 0;
  if (profile.has("stalls"))
    for (const Field &stall : profile["stalls"].items()) {
      const std::string name = stall["reason"].text();
      const double share = stall["share"].number();
      if (name != "selected" && name != "not_selected" && share > most) {
        most = share;
        reason = fmt::format("{}, {:.0f} %", name, 100 * share);
      }
    }
  return reason;
}

std::string sourceOf(const Field &profile) {
  if (const auto readings = profile["readings"].items(); !readings.empty())
    return readings.front()["by"].text();
  std::string text = "none";
  for (const auto &[kind, reason] : profile["refused"].members())
    text += fmt::format("{} {}: {}", text == "none" ? ";" : ",", kind, reason.text());
  return text;
}

Kernel readKernel(const Field &profile) {
  const std::string shape = profile["shape"].text(), mask = profile["mask"].text();
  Kernel kernel;
  kernel.label =
      fmt::format("{}, {}{}", profile["variant"].text(), problemText(shape), mask == "none" ? "" : " " + mask);
  try {
    kernel.flops = flops(parseShape(shape), parseMask(mask));
  } catch (const UserError &error) {
    profile.fail(fmt::format("has a problem that is none: {}", error.what()));
  }
  kernel.source = sourceOf(profile);
  kernel.stall = leadingStall(profile);
  if (profile.has("figures"))
    readFigures(profile["figures"], kernel);
  if (profile.has("verdict")) {
    kernel.verdict = profile["verdict"]["kind"].text();
    kernel.why = profile["verdict"]["why"].text();
  }
  if (profile.has("roofline")) {
    const Field roofline = profile["roofline"];
    kernel.floorMicros = positive(roofline, "floor_us");
    kernel.tensorMicros = positive(roofline, "tensor_us");
    kernel.dramMicros = positive(roofline, "dram_us");
    kernel.limit = roofline["limit"].text();
  }
  return kernel;
}

std::string told(std::optional<double> value) { return value ? numberText(*value) : "-"; }

std::string verdictTable(const std::vector<Kernel> &kernels) {
  HtmlTable table("Time, floor and verdict", {{"no.", true},
                                              {"kernel and problem"},
                                              {"us", true},
                                              {"floor us", true},
                                              {"floor set by"},
                                              {"time / floor", true},
                                              {"verdict"},
                                              {"leading stall"},
                                              {"counters by"}});
  for (size_t i = 0; i < kernels.size(); ++i) {
    const Kernel &k = kernels[i];
    table.add({fmt::format("{}", i + 1), k.label, told(k.microseconds), told(k.floorMicros),
               k.limit.empty() ? "-" : k.limit,
               k.microseconds && k.floorMicros ? fmt::format("{:.2f}", *k.microseconds / *k.floorMicros) : "-",
               k.verdict.empty() ? k.why : k.verdict + (k.why.empty() ? "" : ": " + k.why), k.stall, k.source});
  }
  return table.markup();
}

/// A row for each figure that any kernel has.
std::string figureTable(const std::vector<Kernel> &kernels) {
  std::vector<std::string> names;
  for (const Kernel &kernel : kernels)
    for (const auto &[name, value] : kernel.figures)
      if (std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
  if (names.empty())
    return "";
  std::vector<HtmlTable::Column> columns = {{"figure"}};
  for (size_t i = 0; i < kernels.size(); ++i)
    columns.push_back({fmt::format("{}", i + 1), true});
  HtmlTable table("Hardware counters in their own units, by the number of the kernel above", columns);
  for (const std::string &name : names) {
    std::vector<std::string> cells = {name};
    for (const Kernel &kernel : kernels) {
      const auto found = std::find_if(kernel.figures.begin(), kernel.figures.end(),
                                      [&](const auto &figure) { return figure.first == name; });
      cells.push_back(found == kernel.figures.end() ? "-" : numberText(found->second));
    }
    table.add(cells);
  }
  return table.markup();
}

/// Nothing when no kernel's rates are known. A file is of one GPU, so its roofs are those of the first.
std::optional<Chart> chartOf(const std::vector<Kernel> &kernels, const std::string &id, const std::string &device) {
  std::vector<RooflinePoint> points;
  std::optional<Roof> roof;
  for (const Kernel &kernel : kernels)
    if (kernel.hasPoint()) {
      points.push_back(kernel.point());
      roof = roof ? roof : kernel.roof();
    }
  if (!roof)
    return std::nullopt;
  return rooflineChart(id, "Roofline of " + device, *roof, points);
}

} // namespace

Section rooflineSection(const std::vector<std::string> &files) {
  if (files.empty())
    return missingSection("roofline", "Roofline", "fagen-run profile DIR --output profile.json");
  Section section{"roofline", "Roofline", "", "", {}, false};
  section.body +=
      paragraph("What the GPU's matrix units and memory allow at each intensity. A filled dot is a measured "
                "launch, the hollow one joined to it the floor of its problem: every tensor moved once, every "
                "product and exponential at full rate, all at the same time.");
  size_t count = 0;
  for (const std::string &file : files) {
    const Field result = Field::read(file, kRooflineRemedy);
    std::vector<Kernel> kernels;
    for (const Field &profile : result["profile"].items())
      kernels.push_back(readKernel(profile));
    section.body += provenance(result);
    const auto chart = chartOf(kernels, fmt::format("roofline-{}", section.charts.size() + 1),
                               result.has("device") ? result["device"].textOr("name", "the device") : "the device");
    if (chart) {
      section.charts.push_back(*chart);
      section.body += sideBySide(*chart, verdictTable(kernels));
    } else {
      section.body +=
          paragraph("No picture: the GPU's rates or the time of a launch are not known.") + verdictTable(kernels);
    }
    section.body += figureTable(kernels);
    count += kernels.size();
  }
  section.summary = counted(count, "profile");
  return section;
}

} // namespace fagen::lab::page

// fagen: all parts of a report as one HTML file.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "page.h"

#include <fmt/format.h>

namespace fagen::lab::page {

static constexpr const char *kStyle = R"(
body { margin: 2rem auto; max-width: 76rem; padding: 0 1rem; font: 15px/1.5 sans-serif; background: var(--page);
 color: var(--ink) }
h1 { font-size: 1.6rem } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--rule) } h3 { margin-top: 2rem }
a { color: inherit }
.source, .missing { color: var(--dim) }
code { font-family: monospace }
.pair { display: flex; flex-wrap: wrap; gap: 1rem 2rem; align-items: flex-start }
figure { margin: 0; max-width: 100%; overflow-x: auto }
.scroll { max-width: 100%; overflow-x: auto }
table { border-collapse: collapse; font-size: 13px }
caption { text-align: left; padding: 0.3rem 0; color: var(--dim) }
th, td { padding: 0.15rem 0.7rem 0.15rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--rule) }
.number { text-align: right; font-variant-numeric: tabular-nums }
@media print {
@page { margin: 14mm }
body { margin: 0; max-width: none; font-size: 9pt }
table { font-size: 7.5pt; max-width: 100% } th, td { padding-right: 0.4rem } .number { white-space: nowrap }
td:first-child, td:last-child { overflow-wrap: anywhere }
h2, h3, h2 + p, .source { break-after: avoid } figure, tr { break-inside: avoid }
figure, .scroll { overflow: visible }
svg { max-width: 100%; height: auto }
nav { display: none }
}
)";

std::vector<Section> sectionsOf(const Inputs &inputs) {
  return {timesSection(inputs.times),    rooflineSection(inputs.profiles),   breakdownSection(inputs.breakdowns),
          tuningSection(inputs.tunings), resourcesSection(inputs.resources), gatesSection(inputs.gates)};
}

static std::string contents(const std::vector<Section> &sections) {
  std::string items;
  for (const Section &section : sections)
    items +=
        element("li", {},
                textElement("a", {{"href", "#" + section.id}}, section.heading) + escaped(": " + section.summary)) +
        "\n";
  return element("nav", {{"aria-label", "contents"}}, "\n" + element("ul", {}, "\n" + items) + "\n") + "\n";
}

std::string pageOf(const std::string &title, const std::vector<std::string> &notes,
                   const std::vector<Section> &sections) {
  const std::string head = "\n" + element("meta", {{"charset", "utf-8"}}) + "\n" +
                           element("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}}) +
                           "\n" + textElement("title", {}, title) + "\n" +
                           element("style", {}, "\n" + chartStyle() + kStyle) + "\n";
  std::string body = "\n" + textElement("h1", {}, title) + "\n" + bullets(notes, "source") + contents(sections);
  for (const Section &section : sections)
    body +=
        element("section", {{"id", section.id}}, "\n" + textElement("h2", {}, section.heading) + "\n" + section.body) +
        "\n";
  return "<!DOCTYPE html>\n" +
         element("html", {{"xmlns", "http://www.w3.org/1999/xhtml"}, {"lang", "en"}},
                 "\n" + element("head", {}, head) + "\n" + element("body", {}, body) + "\n") +
         "\n";
}

} // namespace fagen::lab::page

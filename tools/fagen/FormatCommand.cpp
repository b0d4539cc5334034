// fagen: `fagen fmt`: specs in their canonical layout.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Command.h"
#include "fagen/Output/OutputFile.h"
#include "fagen/Parse/Format.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace fagen {

static constexpr const char kFormatExamples[] = R"(
Comments stay. A spec with mistakes is left as it is. Standard input is read for - and where no SPEC is given.

EXAMPLES:
  fagen fmt attention.fa
      prints the spec, laid out
  fagen fmt --in-place specs/*.fa
      replaces each file whose layout differs
  fagen fmt --check specs/*.fa
      names each file whose layout differs, and writes nothing
  cat attention.fa | fagen fmt
      for editors

EXIT CODES: 0 done; 1 a mistake in a spec or on the command line; 2 --check found another layout; 70 a mistake of fagen's
own. Unless the exit code is 0, nothing is written.
)";

namespace {

struct FormattedFile {
  std::string path;
  StringRef text; ///< as it is
  std::string formatted;
};

class FormatCommand : public Command {
public:
  FormatCommand() : Command("fmt", "lay out specs, with their comments", kFormatExamples) {}
  ExitCode run(const char *argv0) override;

private:
  bool checkOptions(ArrayRef<std::string> paths, Diagnostics &diags) const;

  cl::list<std::string> specs{cl::Positional, cl::desc("[SPEC...]"), cl::cat(category), cl::sub(subcommand)};
  cl::opt<bool> check{"check", cl::desc("write nothing; exit with 2 when a layout differs"), cl::cat(category),
                      cl::sub(subcommand)};
  cl::opt<bool> inPlace{"in-place", cl::desc("replace the files instead of printing"), cl::cat(category),
                        cl::sub(subcommand)};
  DiagnosticsFlag diagnostics{category, subcommand};
};

} // namespace

/// The file laid out. Nothing after a reported mistake.
static std::optional<FormattedFile> formatFile(const std::string &path, SourceMgr &sources, Diagnostics &diags) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFileOrSTDIN(path);
  if (!buffer) {
    diags.error(Location(), "cannot read '" + path + "': " + buffer.getError().message());
    return std::nullopt;
  }
  const unsigned id = sources.AddNewSourceBuffer(std::move(*buffer), SMLoc());
  const StringRef text = sources.getMemoryBuffer(id)->getBuffer();
  std::optional<std::string> formatted = formatSpec(text, diags);
  return formatted ? std::optional(FormattedFile{path, text, std::move(*formatted)}) : std::nullopt;
}

/// Where the layout begins to differ.
static void reportDifference(const FormattedFile &file, Diagnostics &diags) {
  const StringRef text = file.text, formatted = file.formatted;
  const size_t same = std::mismatch(text.begin(), text.end(), formatted.begin(), formatted.end()).first - text.begin();
  const SMLoc place = SMLoc::getFromPointer(text.begin() + same);
  diags.error(SMRange(place, place), "the layout differs from here on; `fagen fmt --in-place` repairs it");
}

bool FormatCommand::checkOptions(ArrayRef<std::string> paths, Diagnostics &diags) const {
  if (check && inPlace)
    diags.error(Location(), "--check writes nothing, and --in-place does: choose one");
  if (inPlace && is_contained(paths, "-"))
    diags.error(Location(), "--in-place goes with files, not with standard input");
  if (!check && !inPlace && paths.size() > 1)
    diags.error(Location(), "several specs are not printed one after the other: add --in-place or --check");
  return !diags.hasErrors();
}

/// Replaces the files whose layout differs, none unless all can be written. Gives what went wrong.
static std::string replace(ArrayRef<FormattedFile> files) {
  std::vector<Replacement> replacements;
  for (const FormattedFile &file : files) {
    if (file.text == file.formatted)
      continue;
    Replacement &replacement = replacements.emplace_back(file.path);
    if (std::string problem = replacement.check(); !problem.empty())
      return problem;
    if (std::string problem = replacement.write(file.formatted); !problem.empty())
      return problem;
  }
  for (Replacement &replacement : replacements)
    if (std::string problem = replacement.place(); !problem.empty())
      return problem;
  return {};
}

ExitCode FormatCommand::run(const char *) {
  SourceMgr sources;
  Diagnostics diags(sources, errs());
  diags.setFormat(diagnostics.get());
  std::vector<std::string> paths(specs.begin(), specs.end());
  if (paths.empty())
    paths.push_back("-");
  if (!checkOptions(paths, diags))
    return kUserMistake;
  std::vector<FormattedFile> files;
  for (const std::string &path : paths)
    if (std::optional<FormattedFile> file = formatFile(path, sources, diags))
      files.push_back(std::move(*file));
  if (diags.hasErrors())
    return diags.hasInternalErrors() ? kInternalError : kUserMistake;
  if (inPlace) {
    if (std::string problem = replace(files); !problem.empty())
      diags.error(Location(), problem);
    return diags.hasErrors() ? kUserMistake : kDone;
  }
  if (!check) {
    outs() << files.front().formatted;
    return kDone;
  }
  for (const FormattedFile &file : files)
    if (file.text != file.formatted)
      reportDifference(file, diags);
  return diags.hasErrors() ? kGateFailed : kDone;
}

std::unique_ptr<Command> makeFormatCommand() { return std::make_unique<FormatCommand>(); }

} // namespace fagen

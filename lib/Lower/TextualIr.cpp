// fagen: programs of textual IR: read, and what is left to lower them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Lower/TextualIr.h"

#include "fagen/IR/LastPass.h"
#include "fagen/IR/Names.h"
#include "fagen/IR/Verifier.h"
#include "fagen/Passes/Pipeline.h"
#include "fagen/Support/Suggest.h"

#include "llvm/Support/MemoryBuffer.h"

using namespace fagen;
using llvm::StringRef;
using llvm::Twine;

/// Why text may not name it as the last pass; empty where it may.
static std::string whyNotLast(StringRef name) {
  std::vector<StringRef> names;
  for (const PassEntry &pass : pipelinePasses())
    if (!tellsPassesLeft(pass.leaves) && !(&pass + 1)->needsVariant)
      names.push_back(pass.name);
  if (llvm::is_contained(names, name))
    return {};
  const PassEntry *const pass = lookupPass(name);
  if (!pass) {
    const StringRef near = nearestWord(name, names);
    return ("unknown pass '" + name + "'; " +
            (near.empty() ? "a program stands after " + alternatives(names) : "did you mean '" + near.str() + "'?"))
        .str();
  }
  if (!llvm::is_contained(llvm::make_pointer_range(pipelinePasses()), pass))
    return ("pass '" + name + "' is none of the pipeline, so nothing says which are left; drop `after`").str();
  if (tellsPassesLeft(pass->leaves))
    return ("after pass '" + name + "' the phase of its kernels says which passes are left; drop `after`").str();
  return ("after pass '" + name + "' comes '" + pass[1].name + "', which reads the spec, and IR from text has none")
      .str();
}

static bool checkLast(const ir::Program &program, const ir::LastPass &last, Diagnostics &diags) {
  if (last.source == llvm::SMLoc())
    return true;
  if (const std::string why = whyNotLast(last.name); !why.empty()) {
    diags.error(llvm::SMRange(last.source, last.source), why);
    return false;
  }
  const PassEntry *const pass = lookupPass(last.name);
  for (const std::unique_ptr<ir::Kernel> &kernel : program.kernels)
    if (kernel->phase != pass->leaves) {
      diags.error(kernel->location, "after pass '" + last.name + "' a kernel is in phase " + toString(pass->leaves) +
                                        "; kernel '" + kernel->symbol + "' is in phase " + toString(kernel->phase));
      return false;
    }
  return true;
}

TextualProgram fagen::readProgram(StringRef path, Diagnostics &diags) {
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> file = llvm::MemoryBuffer::getFileOrSTDIN(path);
  if (!file) {
    diags.error(Location(), "cannot read '" + path + "': " + file.getError().message());
    return {};
  }
  const unsigned buffer = diags.getSources().AddNewSourceBuffer(std::move(*file), llvm::SMLoc());
  ir::LastPass last;
  std::unique_ptr<ir::Program> program = ir::parseProgram(buffer, diags, last);
  if (!program || !checkLast(*program, last, diags))
    return {};
  const bool sound =
      ir::verify(*program, [&](const Location &location, const Twine &message) { diags.error(location, message); });
  return sound ? TextualProgram{std::move(program), std::move(last.name)} : TextualProgram();
}

std::vector<std::string> fagen::passesLeft(TextualProgram &text) {
  for (const std::unique_ptr<ir::Kernel> &kernel : text.program->kernels) // what a text calls proved is proved again
    kernel->phase = std::min(kernel->phase, ir::Phase::Placed);
  std::vector<std::string> names;
  if (const PassEntry *const last = lookupPass(text.after)) {
    for (const PassEntry &pass : pipelinePasses())
      if (&pass > last)
        names.push_back(pass.name.str());
    return names;
  }
  ir::Phase phase = ir::Phase::Placed;
  for (const std::unique_ptr<ir::Kernel> &kernel : text.program->kernels)
    phase = std::min(phase, kernel->phase);
  for (const PassEntry &pass : pipelinePasses())
    if (!pass.needsVariant && pass.leaves >= phase)
      names.push_back(pass.name.str());
  return names;
}

// fagen: runs a fuzz target without libFuzzer: every file as it is, then with so many random edits.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   fuzz-ir-replay --runs=N [--seed=S] FILE...    runs each file, then N edited ones in turn; S decides the edits
//
// A target that fails ends the program; the line before says which file and seed it was.

#include "TextMutator.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static std::string current; ///< what a crash is reported with

static void runOn(const std::string &text, const std::string &name) {
  current = name;
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t *>(text.data()), text.size());
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  cl::list<std::string> files(cl::Positional, cl::OneOrMore, cl::desc("<file>..."));
  cl::opt<unsigned> runs("runs", cl::desc("edited files"), cl::init(0));
  cl::opt<uint64_t> seed("seed", cl::desc("of the first edit"), cl::init(1));
  cl::ParseCommandLineOptions(argc, argv, "Runs a fuzz target on files and on random edits of them.\n");

  sys::AddSignalHandler([](void *) { errs() << "failed on " << current << "\n"; }, nullptr);
  std::vector<std::string> texts;
  for (const std::string &file : files) {
    ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFile(file);
    if (!buffer) {
      errs() << "cannot read '" << file << "': " << buffer.getError().message() << "\n";
      return 1;
    }
    texts.push_back((*buffer)->getBuffer().str());
    runOn(texts.back(), file);
  }
  for (uint64_t run = seed; run != seed + runs; ++run) {
    std::string text = texts[run % texts.size()];
    fagen::fuzz::mutateText(text, run);
    runOn(text, files[run % texts.size()] + " with the edits of seed " + std::to_string(run));
  }
  outs() << texts.size() << " files and " << runs << " edited ones from seed " << seed << ": no failure\n";
  return 0;
}

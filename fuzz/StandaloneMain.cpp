// fagen: runs a fuzz target without libFuzzer: every text as it is, then with so many random edits.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   fuzz-ir-replay --runs=N [--seed=S] FILE...    runs each text, then N edited ones in turn; S decides the edits
//
// A new text begins at each line that begins with `program`: a file may hold several, as tests for split-file and dumps
// of --print-after-all do. A target that fails ends the program; the line before says which text and seed it was.

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

struct Text {
  std::string name, content;
};

/// What stands before the first program of a file goes with it.
static void appendTexts(StringRef file, StringRef content, std::vector<Text> &texts) {
  constexpr StringLiteral kBegin = "\nprogram @";
  for (unsigned number = 1;; ++number) {
    const size_t first = content.starts_with(kBegin.drop_front()) ? 0 : content.find(kBegin);
    const size_t next = first == StringRef::npos ? first : content.find(kBegin, first + 1);
    texts.push_back({(file + ", text " + Twine(number)).str(), content.take_front(next).str()});
    if (next == StringRef::npos)
      return;
    content = content.drop_front(next + 1);
  }
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  cl::list<std::string> files(cl::Positional, cl::OneOrMore, cl::desc("<file>..."));
  cl::opt<unsigned> runs("runs", cl::desc("edited texts"), cl::init(0));
  cl::opt<uint64_t> seed("seed", cl::desc("of the first edit"), cl::init(1));
  cl::ParseCommandLineOptions(argc, argv, "Runs a fuzz target on files and on random edits of them.\n");

  sys::AddSignalHandler([](void *) { errs() << "failed on " << current << "\n"; }, nullptr);
  std::vector<Text> texts;
  for (const std::string &file : files) {
    ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFile(file);
    if (!buffer) {
      errs() << "cannot read '" << file << "': " << buffer.getError().message() << "\n";
      return 1;
    }
    appendTexts(file, (*buffer)->getBuffer(), texts);
  }
  for (const Text &text : texts)
    runOn(text.content, text.name);
  for (uint64_t run = seed; run != seed + runs; ++run) {
    const Text &text = texts[run % texts.size()];
    std::string edited = text.content;
    fagen::fuzz::mutateText(edited, run);
    if (run % 4 == 0)
      fagen::fuzz::mutateBytes(edited, run);
    runOn(edited, text.name + " with the edits of seed " + std::to_string(run));
  }
  outs() << texts.size() << " texts and " << runs << " edited ones from seed " << seed << ": no failure\n";
  return 0;
}

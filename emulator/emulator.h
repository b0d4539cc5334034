// fagen: runs an emitted kernel on the CPU and reports what it does wrong.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace fagen::emulator {

/// Global memory that the kernel may read, and write if `writable`.
struct Buffer {
  const void *begin;
  size_t bytes;
  bool writable;
  std::string name;
  /// Where rows have gaps between them: for each element whether it is the tensor's. Null: all bytes are.
  std::shared_ptr<const std::vector<unsigned char>> used = {};
  unsigned elementBytes = 2;
  /// For each byte whether a launch has written it, which launches keep up to date. Null: all bytes are written.
  std::shared_ptr<std::vector<unsigned char>> written = {};
};

/// What stands on a line of the generated file.
struct LineInfo {
  int line;
  std::string op;   ///< of the IR: mma@12
  std::string spec; ///< the place in the spec that asked for it: l4_fp16.fa:17; may be empty
};

/// Warps that do the same; deadlock reports name them.
struct Role {
  std::string name;
  unsigned firstWarp, warps;
};

/// What stands in shared memory from byte `offset` on: `count` objects of `bytes` bytes. Reports name barriers by it.
struct SharedName {
  std::string name;
  unsigned offset, bytes, count = 1;
};

struct Launch {
  std::string symbol;
  unsigned grid;    ///< CTAs
  unsigned threads; ///< of a CTA, 1 to 1024
  size_t sharedBytes;
  std::vector<Buffer> buffers;
  unsigned workers = 0;             ///< OS threads that CTAs are spread over; 0: as many as the machine has
  std::vector<LineInfo> lines = {}; ///< in order; findings cite them
  std::vector<Role> roles = {};
  std::vector<SharedName> names = {};
  unsigned registers = 0;     ///< of a thread at the start; 0: as many as one CTA an SM leaves it
  bool mayBeginEarly = false; ///< before the launch before it has ended, so that its threads await_launches first
  unsigned cluster = 1; ///< CTAs that run together, with at most 1024 threads, whole warps; the grid has whole clusters
};

/// A wait or barrier that is done otherwise than the kernel says; it is named by its line.
struct Mutation {
  enum Action { Disable, Weaken, Move } action = Disable;
  int line = 0;
  enum Call {
    CopyWait,
    CtaBarrier,
    WarpBarrier,
    NamedBarrier,
    NamedBarrierArrive
  } call = CtaBarrier;  ///< what is there
  unsigned pending = 0; ///< of a copy wait that is weakened or moved: so many groups may stay outstanding
  unsigned barrier = 0; ///< of a named barrier that is moved: its number,
  unsigned threads = 0; ///< and how many threads must come
  /// Of a moved one: the line that a thread's calls come from which it passes. It is left out at its own line, and done
  /// before the first of these calls; or, `later`, after the last one, which may be none.
  int target = 0;
  bool later = false;
};

struct Options {
  /// When an asynchronous copy reads its source and writes its target: at issue, at the wait that completes it, or at a
  /// seeded moment between.
  enum Landing { Earliest, Latest, Random };
  Landing landing = Latest;
  /// 0: warps and lanes run in their natural order. Else the order of everything not ordered by the kernel is drawn.
  uint64_t seed = 0;
  size_t maxFindings = 20;
  bool races = true;     ///< look for accesses that nothing orders
  bool coverage = false; ///< tell in Report::lines which lines ran
  bool banks = false;    ///< count the wavefronts of shared memory in Report::banks
  /// A CTA is stopped when it has called this many ptx functions.
  uint64_t maxInstructions = uint64_t(1) << 34;
  /// A weakened barrier of the CTA or of some warps is one of each warp, and a weakened arrival is none; a warp barrier
  /// cannot be weaker.
  std::vector<Mutation> mutations = {};
};

/// One kind of wrong at one place; docs/Emulator.md lists the kinds.
struct Finding {
  std::string kind;
  std::string message;
  std::string file;
  int line;
  std::string op = {}, spec = {}; ///< of the line, where Launch::lines knows it
  /// The other side: of a race the earlier access, of an unfinished copy where it was issued, of lanes or warps that
  /// do not meet where the others wait. 0 where there is none.
  int otherLine = 0;
  std::string otherOp = {}, otherSpec = {};
  int thread = -1, otherThread = -1; ///< in the CTA; -1: no single one
};

/// Accesses to shared memory of one kind and width from one line, as docs/Conflicts.md counts them.
struct BankSite {
  std::string kind; ///< load, store, ldmatrix, cp_async, wmma_load, wmma_store
  int line;
  unsigned bytes;    ///< of a lane
  uint64_t requests; ///< of a warp
  uint64_t wavefronts;
  uint64_t ideal;              ///< wavefronts, if no bank were met twice
  std::vector<unsigned> worst; ///< the lanes' 32 addresses in the worst request; ~0u for a lane that takes no part
};

struct Report {
  bool ok;
  std::vector<Finding> findings;
  uint64_t instructions;            ///< ptx functions called that touch memory or synchronise
  std::vector<BankSite> banks = {}; ///< in order of lines, if Options::banks
  std::vector<int> lines = {};      ///< from which ptx functions were called, in order, if Options::coverage
};

/// The machine is at fault, not the kernel: there is no compiler, the disk is full, others can write to the cache.
struct MachineError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A kernel file, compiled by the system's C++ compiler and loaded.
class Module {
public:
  /// Takes the library from the cache, or compiles it: FAGEN_CXX, else c++, g++ or clang++. Null with `error` set where
  /// the text cannot be read or is refused. MachineError.
  static std::unique_ptr<Module> compile(const std::string &cuPath, std::string &error);
  ~Module();
  Module(const Module &) = delete;
  Module &operator=(const Module &) = delete;

  /// Runs the whole grid and returns when it is done. Several threads may launch at the same time.
  Report launch(const Launch &launch, const void *params, size_t paramBytes, const Options &options) const;

private:
  Module(void *library, int memory, std::string cuPath);
  void *library;
  int memory; ///< what it was loaded from
  std::string cuPath;
};

} // namespace fagen::emulator

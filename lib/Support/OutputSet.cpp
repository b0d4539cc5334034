// fagen: a set of output files that appears in place whole or not at all.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Support/OutputSet.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Parallel.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace fagen {

std::optional<std::string> readFile(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFile(path, /*IsText=*/false,
                                                                        /*RequiresNullTerminator=*/false);
  if (!buffer)
    return std::nullopt;
  return (*buffer)->getBuffer().str();
}

/// Whether the file is there and has this text.
static bool has(StringRef path, StringRef text) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFile(path, /*IsText=*/false,
                                                                        /*RequiresNullTerminator=*/false);
  return buffer && (*buffer)->getBuffer() == text;
}

static std::string failure(StringRef path, std::error_code code) {
  return ("cannot write '" + path + "': " + code.message()).str();
}

namespace {

/// A written temporary file, removed unless it was renamed; none where the file is there already.
struct Temporary {
  SmallString<128> path;
  StringRef destination;
};

} // namespace

static std::error_code writeTemporary(const OutputSet::File &file, Temporary &temporary) {
  const StringRef directory = sys::path::parent_path(file.path);
  if (!directory.empty()) // a bare name lies in the working directory, which is there
    if (std::error_code code = sys::fs::create_directories(directory))
      return code;
  int descriptor = -1;
  if (std::error_code code = sys::fs::createUniqueFile(file.path + ".%%%%%%.tmp", descriptor, temporary.path,
                                                       sys::fs::OF_None, sys::fs::all_read | sys::fs::owner_write))
    return code;
  temporary.destination = file.path;
  raw_fd_ostream os(descriptor, /*shouldClose=*/true);
  os << file.text;
  os.close();
  std::error_code code = os.error();
  os.clear_error();
  return code;
}

std::string OutputSet::commit() {
  // Files are independent, so they are compared and written side by side.
  std::vector<Temporary> temporaries(files.size());
  std::vector<std::error_code> codes(files.size());
  parallelFor(0, files.size(), [&](size_t i) {
    if (!has(files[i].path, files[i].text))
      codes[i] = writeTemporary(files[i], temporaries[i]);
  });
  auto discard = [&](StringRef path, std::error_code code) {
    for (const Temporary &temporary : temporaries)
      if (!temporary.path.empty())
        sys::fs::remove(temporary.path);
    return failure(path, code);
  };
  for (auto [file, code] : zip(files, codes))
    if (code)
      return discard(file.path, code);
  for (const Temporary &temporary : temporaries)
    if (!temporary.destination.empty())
      if (std::error_code code = sys::fs::rename(temporary.path, temporary.destination))
        return discard(temporary.destination, code);
  for (const std::string &path : stale)
    if (std::error_code code = sys::fs::remove(path))
      return failure(path, code);
  return {};
}

} // namespace fagen

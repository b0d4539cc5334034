// fagen: an output stream that indents each line, for everything that writes nested text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   IndentedStream os(file);
//   os << "if (x) {\n";
//   {
//     auto scope = os.scope();
//     os << "y();\n";
//   }
//   os << "}\n";
//
// Empty lines stay empty: no trailing blanks are written. Text comes in small pieces, so it is kept until there is
// some: flush() before the other stream is used.
//
// With a limit of columns long lines of C++ are broken: comments between words, code after a comma or semicolon, as far
// out of parentheses as there is one, else between words; a comment after code goes above it.
#pragma once

#include "llvm/Support/raw_ostream.h"

namespace fagen {

class IndentedStream : public llvm::raw_ostream {
public:
  explicit IndentedStream(llvm::raw_ostream &os, unsigned width = 2, unsigned columns = 0)
      : os(os), width(width), columns(columns) {
    SetBuffer(kept, sizeof(kept));
  }
  ~IndentedStream() override;

  void indent() {
    flush();
    ++level;
  }
  void unindent() {
    flush();
    --level;
  }
  /// The line, from 1, on which the next character will stand.
  unsigned getLine() {
    flush();
    return line;
  }

  /// Indents by one level for as long as it lives.
  class Scope {
  public:
    explicit Scope(IndentedStream &stream) : stream(stream) { stream.indent(); }
    ~Scope() { stream.unindent(); }
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

  private:
    IndentedStream &stream;
  };
  [[nodiscard]] Scope scope() { return Scope(*this); }

private:
  void write_impl(const char *text, size_t size) override;
  uint64_t current_pos() const override { return os.tell(); }
  void writeBroken(llvm::StringRef text, unsigned indent);

  llvm::raw_ostream &os;
  unsigned width, columns;
  std::string open; ///< of a line that has not ended, where lines are broken
  unsigned level = 0;
  unsigned line = 1;
  bool atLineStart = true;
  char kept[1024];
};

} // namespace fagen

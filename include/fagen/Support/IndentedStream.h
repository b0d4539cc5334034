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
// Empty lines stay empty: no trailing blanks are written.
#pragma once

#include "llvm/Support/raw_ostream.h"

namespace fagen {

class IndentedStream : public llvm::raw_ostream {
public:
  explicit IndentedStream(llvm::raw_ostream &os, unsigned width = 2) : os(os), width(width) { SetUnbuffered(); }
  ~IndentedStream() override { flush(); }

  void indent() { ++level; }
  void unindent() { --level; }
  unsigned getLevel() const { return level; }
  /// The line, from 1, on which the next character will stand.
  unsigned getLine() const { return line; }

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

  llvm::raw_ostream &os;
  unsigned width;
  unsigned level = 0;
  unsigned line = 1;
  bool atLineStart = true;
};

} // namespace fagen

// fagen: a spec as it is written: names and values with their places, nothing checked yet.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/Support/SMLoc.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fagen::ast {

struct Name {
  std::string text;
  llvm::SMRange range;
};

struct Number {
  double value = 0;
  bool isInteger = true;
  llvm::SMRange range;
};

/// One value, with any tune choice made: `128 x 64`, `192 : 128`, `at(after_load)`, `16 B`.
struct Plain {
  enum Kind : uint8_t {
    Dims,  ///< numbers: one integer, or several with `x` between them
    Pair,  ///< numbers: two, with `:` between them
    Word,  ///< word, and arguments when hasArguments
    Bytes, ///< numbers: one, already multiplied by its unit
    Other, ///< a number that no key takes: negative, or with a point
  };
  Kind kind = Dims;
  std::vector<int64_t> numbers;
  std::string word;
  std::vector<Name> arguments; ///< names, or integers as they are written
  std::vector<Number> values;  ///< of `name = number` arguments: one for each
  bool hasArguments = false;
  llvm::SMRange range;
};

/// The choices of one item: one, or those of its tune(...)s in order; the first is the default.
struct Item {
  std::vector<Plain> choices;
  bool isTune = false;
  llvm::SMRange range;
};

struct Value {
  std::vector<Item> items; ///< more than one only for an axis
  bool isAxis = false;
  llvm::SMRange range;
};

struct Setting {
  Name key;
  Value value;
};

struct Expr {
  enum Kind : uint8_t {
    Integer, ///< integer, unit applied
    Decimal, ///< decimal
    Variable,
    Call, ///< name(operands)
    Unary,
    Binary,
    Read,   ///< of forms: name[operands]
    Select, ///< of forms: operands are the condition, and the values when it is true and false
  };
  Kind kind = Integer;
  int64_t integer = 0;
  bool hasUnit = false; ///< of an integer: it is a number of bytes
  double decimal = 0;
  std::string name; ///< of a variable or call; the operator of unary and binary
  std::vector<std::unique_ptr<Expr>> operands;
  llvm::SMRange range;
};

/// What was reported of a body and skipped: checks must not take it for something that was never written.
struct Lost {
  std::vector<std::string> keys; ///< that it set
  bool mayBeAny = false;         ///< some of it shows no key: it may have set any
};

struct When;

/// What stands in a problem or schedule: a setting or a `when`, in text order.
struct Statement {
  std::optional<Setting> setting;
  std::unique_ptr<When> when;
};

struct When {
  std::unique_ptr<Expr> condition;
  std::vector<Statement> body;
  Lost lost;
  llvm::SMRange range; ///< of the word `when`
};

struct Problem {
  std::vector<Setting> settings;
  Lost lost;
  llvm::SMRange range; ///< of the word `problem`
};

struct Schedule {
  std::optional<Name> name;
  std::vector<Statement> body;
  Lost lost;
  llvm::SMRange range; ///< of the word `schedule`
};

struct SelectLine {
  std::unique_ptr<Expr> condition; ///< null: otherwise
  Name schedule;
  llvm::SMRange range; ///< of `when condition`, or of `otherwise`
};

struct Select {
  std::vector<SelectLine> lines;
  std::optional<Name> least; ///< what is to be least: time or joules
  bool isDamaged = false;    ///< something in it was reported: what is missing may have been lost
  llvm::SMRange range;       ///< of the word `select`
};

struct Claim {
  std::unique_ptr<Expr> condition;
  llvm::SMRange range; ///< of the word `claim`
};

struct Gate {
  Name name;
  std::string relation;
  std::unique_ptr<Expr> value;
  llvm::SMRange range; ///< of the whole line
};

struct Require {
  std::vector<Gate> gates;
  llvm::SMRange range; ///< of the word `require`
};

struct Kernel {
  Name name;
  std::vector<Problem> problems; ///< exactly one is right; the others are reported
  std::vector<Schedule> schedules;
  std::vector<Select> selects;
  std::vector<Claim> claims;
  std::vector<Require> requires_;
  bool isDamaged = false;     ///< something in it was reported
  bool hasLostBlocks = false; ///< a block of it was not understood: what refers to one may have meant that
};

/// `param name : type[extents] ascending in [low, high];`
struct FormParam {
  Name name;
  Name type;
  std::vector<Name> extents; ///< of a tensor: names, or integers as they are written
  bool isAscending = false;
  std::unique_ptr<Expr> low, high; ///< both, or neither
  bool isDamaged = false;          ///< something after its name was reported
  llvm::SMRange range;
};

/// `let name = value;`, and `score`, `mask`, `sink` and `v_scale`.
struct FormLine {
  enum Kind : uint8_t { Let, Score, Mask, Sink, VScale };
  Kind kind = Let;
  Name name;                   ///< of a let; else the word itself
  std::unique_ptr<Expr> value; ///< null: reported
};

struct Form {
  Name name;
  std::vector<FormParam> params;
  std::vector<FormLine> lines;
  bool isDamaged = false; ///< something in it was reported: what is missing may have been lost
};

struct File {
  std::vector<Name> targets;
  bool hasLostTargets = false; ///< their line was not understood
  std::vector<Form> forms;
  std::vector<Kernel> kernels;
};

} // namespace fagen::ast

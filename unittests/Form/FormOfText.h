// fagen: a form of a text, as the laboratory interprets it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Form/Check.h"
#include "fagen/Form/Postfix.h"
#include "fagen/Parse/Parser.h"
#include "lab/reference/form.h"

#include "llvm/Support/raw_ostream.h"

#include <string>

namespace fagen {

inline lab::FormTexts textsOf(const form::Form &form) {
  lab::FormTexts texts;
  for (const form::Let &let : form.lets)
    texts.lets.emplace_back(let.name, toPostfix(*let.value, form));
  texts.score = form.score ? toPostfix(*form.score, form) : "";
  texts.mask = form.mask ? toPostfix(*form.mask, form) : "";
  texts.sink = form.sink ? toPostfix(*form.sink, form) : "";
  return texts;
}

/// Nothing, with what was reported in `report`, when the text has a mistake.
inline std::optional<form::Form> formOfText(const std::string &text, std::string &report) {
  llvm::SourceMgr sources;
  const unsigned id = sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, "x.fa"), {});
  llvm::raw_string_ostream os(report);
  Diagnostics diags(sources, os);
  const ast::File file = parseSpec(sources.getMemoryBuffer(id)->getBuffer(), diags);
  if (diags.hasErrors() || file.forms.size() != 1)
    return std::nullopt;
  return form::checkForm(file.forms.front(), diags);
}

} // namespace fagen

// fagen: a form of a text, as the laboratory interprets it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Form/Check.h"
#include "fagen/Form/Postfix.h"
#include "fagen/Parse/Parser.h"
#include "lab/cases/form_inputs.h"
#include "lab/reference/form.h"

#include "llvm/Support/raw_ostream.h"

#include <string>

namespace fagen {

inline lab::FormTexts textsOf(const form::Form &form) {
  lab::FormTexts texts;
  for (const form::Let &let : form.lets)
    texts.lets.emplace_back(let.name, toPostfix(*let.value, form));
  for (const form::Param &param : form.params)
    if (typeOf(param.element) == form::Type::F32)
      texts.reals.insert(param.name);
  texts.score = form.score ? toPostfix(*form.score, form) : "";
  texts.mask = form.mask ? toPostfix(*form.mask, form) : "";
  texts.sink = form.sink ? toPostfix(*form.sink, form) : "";
  return texts;
}

/// What a manifest would tell of it.
inline lab::FormPtr definitionOf(const form::Form &form) {
  static constexpr uint32_t kElements[] = {FAGEN_ELEMENT_BIT, FAGEN_ELEMENT_U8,   FAGEN_ELEMENT_I32,
                                           FAGEN_ELEMENT_F16, FAGEN_ELEMENT_BF16, FAGEN_ELEMENT_F32};
  static constexpr int64_t kSizes[] = {FAGEN_VAR_BATCH, FAGEN_VAR_HEADS, FAGEN_VAR_KV_HEADS, FAGEN_VAR_SEQ_Q,
                                       FAGEN_VAR_SEQ_KV};
  auto definition = std::make_shared<lab::FormDefinition>();
  definition->name = definition->text = form.name;
  definition->texts = textsOf(form);
  for (const form::Param &param : form.params) {
    lab::FormParam read{param.name, kElements[unsigned(param.element)], {}, param.isAscending, 0, 0, {}};
    const bool isReal = typeOf(param.element) == form::Type::F32;
    read.low = isReal ? param.realRange.low : double(param.range.low);
    read.high = isReal ? param.realRange.high : double(param.range.high);
    for (const form::Extent &extent : param.extents)
      read.extents.push_back({extent.kind == form::Extent::Number ? fagen_op{FAGEN_OP_CONSTANT, 0, extent.value}
                              : extent.kind == form::Extent::OfPlace
                                  ? fagen_op{FAGEN_OP_VARIABLE, 0, kSizes[extent.value - int64_t(form::Place::Batches)]}
                                  : fagen_op{FAGEN_OP_VARIABLE, 0, FAGEN_VAR_FORM_0 + extent.value}});
    definition->params.push_back(std::move(read));
  }
  return definition;
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

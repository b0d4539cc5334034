// fagen: how the enumerations of the IR are spelled in its textual form.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"

#include <optional>

namespace fagen::ir {

inline constexpr Space kSpaces[] = {Space::Global, Space::Shared, Space::Fragment};
inline constexpr ElementType kElementTypes[] = {
    ElementType::F16, ElementType::BF16,     ElementType::E4M3, ElementType::E5M2, ElementType::F32,
    ElementType::U32, ElementType::MBarrier, ElementType::I32,  ElementType::U8,   ElementType::Bit};
inline constexpr Layout kLayouts[] = {Layout::RowMajor, Layout::Xor, Layout::Padded};
inline constexpr Phase kPhases[] = {Phase::Built,     Phase::Split,  Phase::Pipelined, Phase::LaidOut,
                                    Phase::Allocated, Phase::Placed, Phase::Verified};

llvm::StringRef toString(Space space);
llvm::StringRef toString(ElementType type);
llvm::StringRef toString(Layout layout);
llvm::StringRef toString(Phase phase);

/// The value of the list that is spelled `text`.
template <typename Enum> std::optional<Enum> fromString(llvm::StringRef text, llvm::ArrayRef<Enum> values) {
  for (Enum value : values)
    if (toString(value) == text)
      return value;
  return std::nullopt;
}

} // namespace fagen::ir

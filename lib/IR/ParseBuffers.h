// fagen: declarations of buffers from text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "Lexer.h"

namespace fagen::ir {

/// Of one kernel.
class BufferParser {
public:
  BufferParser(Lexer &lexer, Kernel &kernel) : lexer(lexer), kernel(kernel) {}

  bool parseBuffer(Space space);
  bool parseScratch();
  bool parseView();
  /// param window : i32 in [1, 4096], param cap : f32, param %slope : f32[heads, 16]
  bool parseParam();
  /// [0, 4096]
  bool parseInterval(int64_t &low, int64_t &high);
  /// %base[b, r, c]
  bool parseGlobalElement(Buffer *&buffer, llvm::SmallVector<Expr, 4> &at);
  /// 64, kTileKeys, 16 * kHeldSlices: of constants that stand above
  bool parseCount(Count &count);
  /// What declarations name that stands after them. Called when all buffers are there.
  bool resolveLaterNames();

private:
  /// A buffer that the declaration of another one names, perhaps before it is declared itself.
  struct LaterName {
    enum Use { Full, Empty, Overlays };
    std::string buffer, named;
    const char *place;
    Use use;
  };

  bool parseShape(Buffer &buffer);
  bool parsePromises(Buffer &buffer);
  bool parseIndexOfView(AddressMap &map);
  bool parseGlobal(Buffer buffer);
  bool parseReadTensor(bool isOfCaller);
  bool atRows() const;
  bool atDeclarationOfParam() const;
  bool parseBufferProperties(Buffer &buffer);
  bool parseGuard(Buffer &buffer);
  bool parseLaterName(const Buffer &buffer, LaterName::Use use, const llvm::Twine &what);

  Lexer &lexer;
  Kernel &kernel;
  std::vector<LaterName> laterNames;
};

} // namespace fagen::ir

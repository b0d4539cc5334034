// fagen: the forms that a kernel's problem may name, and those that it does name.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Form/Use.h"
#include "fagen/Parse/AST.h"
#include "fagen/Support/Diagnostics.h"

#include "llvm/ADT/ArrayRef.h"

namespace fagen {

/// A form of the file; null where it has a mistake, which was reported.
struct FileForm {
  std::string name;
  std::shared_ptr<const form::Form> form;
};

class FormAxis {
public:
  explicit FormAxis(llvm::ArrayRef<FileForm> file) : file(file) {}

  const FileForm *find(llvm::StringRef name) const;
  std::vector<llvm::StringRef> names() const;
  /// The use that a value of the axis means; null after a reported mistake, or where the form has one.
  std::shared_ptr<const form::Use> use(const ast::Plain &plain, Diagnostics &diags);
  /// What stands for it in keys, tables and conditions.
  unsigned numberOf(const form::Use &use) const;
  /// The numbers of all uses of a form.
  std::vector<unsigned> numbersOf(llvm::StringRef name) const;

  std::vector<std::shared_ptr<const form::Use>> uses; ///< each once, in the order of the text

private:
  std::optional<form::Bound> bound(const form::Form &form, const ast::Name &name, const ast::Number &number,
                                   Diagnostics &diags) const;

  llvm::ArrayRef<FileForm> file;
};

} // namespace fagen

// fagen: what a proof of roles sees of the sizes of tiles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A size matters to it in two ways only: it says which threads meet on which bytes, which AccessTable tells, and how
// many bytes complete a phase. Those are added up and compared with each other, so all of them may have a common
// factor; and an arrival is compared with the most that a phase can count.

#include "fagen/Analysis/AccessTable.h"
#include "fagen/Analysis/Order.h"
#include "fagen/IR/OpClasses.h"
#include "fagen/IR/Queries.h"
#include "fagen/IR/Sync.h"

#include <numeric>

using namespace fagen;
using namespace fagen::ir;

int64_t fagen::bytesOfCopy(const Kernel &kernel, const Op &op) {
  const Buffer &dst = *CopyIssueOp(op).dst().buffer;
  return int64_t(dst.rows) * dst.columns * sizeOf(dst.type) / (op.isSet(Attr::Cluster) ? kernel.grid.cluster : 1);
}

/// Those of copies and of arrivals that announce a literal, in the order of the program, without their common factor.
static std::vector<int64_t> bytesSeen(const Kernel &kernel) {
  std::vector<int64_t> all;
  bool areProportional = true;
  for (const Role &role : kernel.roles)
    walk(role.body, [&](const Op &op) {
      if (syncOf(op).done == Means::Phases)
        all.push_back(bytesOfCopy(kernel, op));
      if (!op.has(Attr::Bytes))
        return;
      const Expr &bytes = op.expr(Attr::Bytes);
      all.push_back(bytes.kind() == ExprKind::Constant ? bytes.value() : 0);
      areProportional &= bytes.kind() == ExprKind::Constant && bytes.value() >= 0 && bytes.value() <= kMostBytesOfPhase;
    });
  const int64_t unit = areProportional ? std::accumulate(all.begin(), all.end(), int64_t(0),
                                                         [](int64_t a, int64_t b) { return std::gcd(a, b); })
                                       : 1;
  for (int64_t &bytes : all)
    bytes /= std::max<int64_t>(unit, 1);
  return all;
}

std::string fagen::sizesSeenBetweenRoles(const Kernel &kernel) {
  llvm::SmallVector<const Role *, 4> roles;
  for (const Role &role : kernel.roles)
    roles.push_back(&role);
  std::string text;
  for (const int64_t bytes : bytesSeen(kernel))
    text += std::to_string(bytes) + " ";
  return text + AccessTable(kernel, roles).text();
}

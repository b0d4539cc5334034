// fagen: says what is missing between two accesses that meet.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "OrderGap.h"

#include "fagen/IR/OpClasses.h"

using namespace fagen;
using namespace fagen::ir;

/// What says that an asynchronous access is complete.
static std::string completionOf(const Op &op) {
  switch (syncOf(op).done) {
  case Means::ProductGroups:
    return "mma_wait";
  case Means::StoreGroups:
    return "bulk_wait";
  case Means::Phases:
    return "wait for its phase of %" + CopyIssueOp(op).full().buffer->name;
  default:
    return "copy_wait";
  }
}

std::string fagen::textOf(Gap gap, const Access &first) {
  switch (gap) {
  case Gap::None:
    return {};
  case Gap::Incomplete:
    return "no " + completionOf(*first.op) + " says that the first is complete";
  case Gap::Unordered:
    return "nothing orders the two";
  case Gap::InitFence:
    return "no fence of kind mbarrier_init between";
  case Gap::ProxyFence:
    return "no fence of kind async_proxy between";
  case Gap::ProductFence:
    return "no fence of kind mma between";
  }
  return {};
}

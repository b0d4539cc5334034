// fagen: pass overlap-launches: kernels set themselves up while the launch before them ends.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programmatic dependent launch: with pdl = 1 a launch may begin before the one before it in the stream has ended. What
// it does until then touches shared memory only: it makes its mbarriers. Then it waits, and tells the next launch to
// begin.
//
//   init ...
//   barrier                   the mbarriers are there
//   await_launches            by one thread of a role that copies; by all of the others, which write results
//
// Lets are computed before that. Where they read memory, or a form's numbers may lie on the device, all threads wait at
// the very head of their role, which is that of the kernel; what a launch needs to begin is still hidden. So do those
// of kernels whose tiles have indices, which lets follow from.

#include "fagen/IR/Queries.h"
#include "fagen/Passes/Passes.h"

#include "AskedNumbers.h"
#include "ShapeCheck.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

bool fagen::overlapLaunches(Kernel &kernel, PassContext &context) {
  const Constant *const asked = askedNumber(kernel, OptionKey::Pdl);
  const auto fillers = fillersOf(kernel);
  if (fillers.empty() || !asked)
    return false;
  ShapeCheck shape(kernel, context, "overlap-launches");
  if (!llvm::all_of(kernel.roles, [&](Role &role) {
        return shape.needs(headBarrier(role.body) != role.body.ops.end(),
                           "a barrier at the head of role " + role.name) &&
               shape.needs(!firstOf(role.body, OpKind::AwaitLaunches), "roles that await no launches yet");
      }))
    return false;
  const bool isAtHead = !kernel.grid.indices.empty() || readsAtItsHead(kernel);
  for (Role &role : kernel.roles) {
    auto await = makeAwaitLaunches(
        {.location = asked->location, .note = "overlap-launches: what launches before wrote is there"});
    if (isAtHead || !llvm::is_contained(fillers, &role))
      AwaitLaunchesOp(*await).setBy(Actor::Thread);
    const auto place = isAtHead ? role.body.ops.begin() : std::next(headBarrier(role.body));
    role.body.ops.insert(place, std::move(await));
  }
  return true;
}

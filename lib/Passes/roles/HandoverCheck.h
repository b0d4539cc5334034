// fagen: what order-roles needs of a kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../ShapeCheck.h"
#include "Handovers.h"

namespace fagen {

/// Whether each handover has one filler, users that say when they are done, and places that no run changes; reports the
/// first that has not.
bool canOrder(const ir::Kernel &kernel, llvm::ArrayRef<Handover> handovers, const OpPlaces &places, ShapeCheck &shape);

} // namespace fagen

// fagen: forms as kernels take them: their text, and the layout of their params.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Form/Use.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <fmt/format.h>

using namespace llvm;

namespace fagen::form {

static constexpr unsigned kScalarBytes = 16, kPointerBytes = 8, kStrideBytes = 8;

const Bound *Use::boundOf(unsigned param) const {
  const auto found = find_if(bound, [&](const Bound &each) { return each.param == param; });
  return found == bound.end() ? nullptr : &*found;
}

static std::string numberOf(const Form &form, const Bound &bound) {
  return form.params[bound.param].element == Element::I32 ? std::to_string(bound.integer)
                                                          : fmt::format("{}", float(bound.real));
}

std::string toText(const Use &use) {
  std::string text;
  for (const Bound &bound : use.bound)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", use.form->params[bound.param].name,
                        numberOf(*use.form, bound));
  return use.form->name + (text.empty() ? "" : "(" + text + ")");
}

std::string toNamePart(const Use &use) {
  std::string name = use.form->name;
  for (const Bound &bound : use.bound) {
    std::string number = numberOf(*use.form, bound);
    std::replace(number.begin(), number.end(), '.', 'p');
    std::replace(number.begin(), number.end(), '-', 'm');
    number.erase(std::remove(number.begin(), number.end(), '+'), number.end());
    name += "_" + use.form->params[bound.param].name + number;
  }
  return name;
}

Layout layoutOf(const Use &use) {
  Layout layout;
  for (bool isTensor : {false, true})
    for (const auto &[index, param] : enumerate(use.form->params)) {
      if (param.isTensor() != isTensor || use.boundOf(index))
        continue;
      layout.fields.push_back({unsigned(index), layout.bytes});
      layout.bytes += isTensor ? kPointerBytes + kStrideBytes * unsigned(param.extents.size()) : kScalarBytes;
    }
  return layout;
}

unsigned paramOfScalar(const Use &use, unsigned n) { return layoutOf(use).fields[n].param; }

static Form makeNone() {
  Form form;
  form.name = "none";
  return form;
}

static NodePtr placeNode(Place place) {
  auto node = std::make_shared<Node>();
  node->op = Op::PlaceOf;
  node->type = placeInfo(place).type;
  node->index = unsigned(place);
  node->range = placeInfo(place).range;
  node->places = 1u << unsigned(place);
  return node;
}

/// mask = k <= p
static Form makeCausal() {
  Form form;
  form.name = "causal";
  auto mask = std::make_shared<Node>();
  mask->op = Op::Le;
  mask->type = Type::Bool;
  mask->operands = {placeNode(Place::Key), placeNode(Place::QueryPlace)};
  mask->range = {0, 1};
  mask->places = mask->operands[0]->places | mask->operands[1]->places;
  form.mask = std::move(mask);
  return form;
}

const Form &noneForm() {
  static const Form form = makeNone();
  return form;
}

const Form &causalForm() {
  static const Form form = makeCausal();
  return form;
}

} // namespace fagen::form

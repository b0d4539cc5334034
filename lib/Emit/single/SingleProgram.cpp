// fagen: a program as two files that need no fagen.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a row of a table says as data, the files say as code: how a call's tensors look, each member of the kernels'
// argument, how many CTAs there are. The caller gives all sizes.

#include "SingleSource.h"

#include "fagen/Emit/Single.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <fmt/format.h>

using namespace fagen;
using llvm::StringRef;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

namespace {

struct ElementFacts {
  StringRef name;
  unsigned bytes, ofMaps; ///< cuda.h's number of the type that a tensor map has
};
constexpr ElementFacts kElements[] = {{"f16", 2, 6}, {"bf16", 2, 9}, {"e4m3", 1, 0}, {"u8", 1, 0},
                                      {"f32", 4, 2}, {"i32", 4, 2},  {"u32", 4, 2}};

class SingleProgramEmitter {
public:
  SingleProgramEmitter(const KernelPlan &plan, const ir::Program &program, StringRef source, StringRef name)
      : plan(plan), row(plan.variants.front()), recipe(*row.recipe), program(program), source(source), name(name) {}

  SingleFiles run() const { return {header(), cuda()}; }

private:
  std::string header() const;
  std::string cuda() const;

  const Array &listOf(StringRef key) const { return *recipe.getArray(key); }
  static const Object &objectOf(const Value &value) { return *value.getAsObject(); }
  static std::string textOf(const Object &object, StringRef key) { return object.getString(key)->str(); }
  static bool is(const Object &object, StringRef key) { return object.getBoolean(key).value_or(false); }
  /// What callers do not give: counters, and what one launch leaves for the next.
  static bool isInWorkspace(const Object &buffer) { return is(buffer, "workspace") || is(buffer, "restored"); }

  /// What `text` makes of each value of a list.
  template <typename Text> std::string each(StringRef key, Text text) const {
    std::string all;
    for (const Value &value : listOf(key))
      all += text(objectOf(value));
    return all;
  }

  std::string expression(const Array &terms) const;
  std::string memberOf(const Object &buffer) const;
  std::string tensor(const Object &buffer) const;
  std::string range(const Object &number) const;
  std::string field(const Object &param) const;
  std::string map(const Object &param) const;
  unsigned indexOf(const Object &param) const;
  std::string launches() const;

  const KernelPlan &plan;
  const VariantPlan &row;
  const Object &recipe;
  const ir::Program &program;
  const StringRef source, name;
};

/// C++ of a postfix program, in which args and sms are in scope and n does what 64 bits may not hold.
std::string SingleProgramEmitter::expression(const Array &terms) const {
  std::vector<std::string> stack;
  for (const Value &value : terms) {
    if (std::optional<int64_t> constant = value.getAsInteger()) {
      stack.push_back(std::to_string(*constant));
      continue;
    }
    const std::string word = value.getAsString()->str();
    const bool isNumber = word == "sms" || llvm::any_of(listOf("numbers"), [&](const Value &number) {
                            return textOf(objectOf(number), "name") == word;
                          });
    if (isNumber) {
      stack.push_back(word == "sms" ? word : "args." + word);
      continue;
    }
    const std::string right = stack.back();
    stack.pop_back();
    stack.back() = fmt::format("n.{}({}, {})", word, stack.back(), right);
  }
  return stack.back();
}

static const ElementFacts &factsOf(const Object &buffer) {
  return *llvm::find_if(kElements, [&](const ElementFacts &one) { return one.name == *buffer.getString("type"); });
}

std::string SingleProgramEmitter::memberOf(const Object &buffer) const {
  if (isInWorkspace(buffer))
    return "";
  const std::string called = textOf(buffer, "name");
  std::string text =
      fmt::format("  {}void *{}; /* {}{}, at a multiple of {} bytes{} */\n", is(buffer, "written") ? "" : "const ",
                  called, textOf(buffer, "declared"), is(buffer, "written") ? ", written" : "",
                  std::max<int64_t>(buffer.getInteger("alignment").value_or(1), factsOf(buffer).bytes),
                  is(buffer, "zeroed") ? "; zeros before each launch" : "");
  if (const size_t rank = buffer.getArray("shape")->size(); is(buffer, "strided") && rank > 1)
    text += fmt::format("  int64_t {}_stride[{}]; /* elements from one to the next along each dimension but the last; "
                        "all 0: dense */\n",
                        called, rank - 1);
  return text;
}

std::string SingleProgramEmitter::header() const {
  const std::string numbers = each("numbers", [](const Object &number) {
    const std::string called = textOf(number, "name");
    return number.get("low") ? fmt::format("  int {}; /* {} to {} */\n", called, *number.getInteger("low"),
                                           *number.getInteger("high"))
                             : fmt::format("  float {};\n", called);
  });
  const auto given = llvm::find_if(listOf("buffers"), [](const Value &v) { return !isInWorkspace(objectOf(v)); });
  return filledText(
      "program.h.in", name,
      {{"@spec@", plan.specName},
       {"@program@", textOf(recipe, "program")},
       {"@targets@", listTargets(plan)},
       {"@first@", textOf(objectOf(*given), "name")},
       {"@build@", fmt::format("`nvcc -O3 -arch={} -c {}.cu` is the build.", textOf(recipe, "target"), name.str())},
       {"@members@", each("buffers", [&](const Object &buffer) { return memberOf(buffer); }) + numbers}});
}

/// An initializer of the source's Tensor.
std::string SingleProgramEmitter::tensor(const Object &buffer) const {
  const std::string called = textOf(buffer, "name");
  const ElementFacts &facts = factsOf(buffer);
  const Array &shape = *buffer.getArray("shape");
  std::string extents;
  for (const Value &extent : shape)
    extents += (extents.empty() ? "" : ", ") + expression(*extent.getAsArray());
  const bool isGiven = !isInWorkspace(buffer);
  return fmt::format("      {{\"{}\", {}, {}, {}, {}, {}, {}, {}, {}, {}, {{{}}}}},\n", called,
                     isGiven ? "args." + called : "nullptr",
                     isGiven && is(buffer, "strided") && shape.size() > 1 ? "args." + called + "_stride" : "nullptr",
                     shape.size(), facts.bytes, facts.ofMaps, buffer.getInteger("alignment").value_or(1),
                     is(buffer, "written"), !isGiven, is(buffer, "zeroed"), extents);
}

std::string SingleProgramEmitter::range(const Object &number) const {
  const std::string called = textOf(number, "name");
  if (!number.get("low"))
    return fmt::format("  if (!std::isfinite(args.{0}))\n    return \"{0} is not finite\";\n", called);
  const int64_t low = *number.getInteger("low"), high = *number.getInteger("high");
  return fmt::format("  if (args.{0} < {1} || args.{0} > {2})\n    return refuse(\"{0} is %d; it is {1} to {2}\", "
                     "args.{0});\n",
                     called, low, high);
}

/// Which of the tensors a member of the kernels' argument is about.
unsigned SingleProgramEmitter::indexOf(const Object &param) const {
  const std::string wanted = textOf(param, "buffer");
  const auto found =
      llvm::find_if(listOf("buffers"), [&](const Value &buffer) { return textOf(objectOf(buffer), "name") == wanted; });
  return found - listOf("buffers").begin();
}

std::string SingleProgramEmitter::map(const Object &param) const {
  std::string dimensions;
  const unsigned index = indexOf(param);
  for (const Value &value : *param.getArray("dimensions")) {
    const Object &dimension = objectOf(value);
    const std::optional<int64_t> along = dimension.getInteger("along");
    dimensions += fmt::format(
        "{}{{{}, {}, {}}}", dimensions.empty() ? "" : ",\n         ", expression(*dimension.getArray("size")),
        along ? fmt::format("tensors[{}].stride[{}]", index, *along) : expression(*dimension.getArray("stride")),
        *dimension.getInteger("box"));
  }
  return fmt::format("  if (!refusal && has_work)\n    refusal = fill_map(reinterpret_cast<char *>(&params) + {}, "
                     "tensors, {}, {},\n        {{{}}});\n",
                     *param.getInteger("offset"), index, *param.getInteger("swizzle"), dimensions);
}

/// Fills in a member of the kernels' argument.
std::string SingleProgramEmitter::field(const Object &param) const {
  const std::string kind = textOf(param, "kind");
  if (kind == "map")
    return map(param);
  if (kind == "pointer")
    return fmt::format("  point(params.{}, tensors[{}]);\n", textOf(param, "buffer"), indexOf(param));
  if (kind == "stride") {
    const int64_t dimension = *param.getInteger("dimension");
    return fmt::format("  params.{0}_stride[{1}] = tensors[{2}].stride[{1}];\n", textOf(param, "buffer"), dimension,
                       indexOf(param));
  }
  const std::string called =
      kind == "f32" ? textOf(param, "value") : param.getArray("value")->front().getAsString()->str();
  return fmt::format("  params.{0} = args.{0};\n", called);
}

std::string SingleProgramEmitter::launches() const {
  std::string text;
  unsigned index = 0;
  for (const LaunchPlan &launch : row.launches)
    text += fmt::format("  if (!refusal)\n    refusal = launch(reinterpret_cast<const void *>(&{}_detail::{}::{}),\n"
                        "                     ctas[{}], {}, {}, params, stream);\n",
                        name.str(), row.variant->symbol, launch.symbol, index++, launch.threads, launch.sharedBytes);
  return text;
}

std::string SingleProgramEmitter::cuda() const {
  std::set<unsigned> columns;
  for (const std::unique_ptr<ir::Kernel> &kernel : program.kernels)
    for (const std::unique_ptr<ir::Buffer> &buffer : kernel->buffers)
      if (buffer->space == ir::Space::Fragment)
        columns.insert(buffer->columns);
  std::vector<std::string> ctas;
  for (const Value &launch : listOf("launches"))
    ctas.push_back(expression(*objectOf(launch).getArray("ctas")));
  const bool hasMaps =
      llvm::any_of(listOf("params"), [](const Value &param) { return textOf(objectOf(param), "kind") == "map"; });
  const std::string work = "  bool has_work = false; // else no map is needed\n"
                           "  for (const int64_t each : ctas)\n    has_work = has_work || each != 0;\n";
  const std::string host = filledText(
      "program.cu.in", name,
      {{"@filling@", hasMaps ? filledText("maps.cu.in", name) + filledText("program_maps.cu.in", name) : ""},
       {"@params@", fmt::format("{}_detail::{}::Params", name.str(), row.variant->symbol)},
       {"@count@", std::to_string(listOf("buffers").size())},
       {"@bytes@", std::to_string(*recipe.getInteger("argument_bytes"))},
       {"@ctas@", llvm::join(ctas, ", ")},
       {"@ranges@", each("numbers", [&](const Object &number) { return range(number); })},
       {"@tensors@", each("buffers", [&](const Object &buffer) { return tensor(buffer); })},
       {"@fill@", (hasMaps ? work : "") + each("params", [&](const Object &param) { return field(param); })}});
  return singleSource(plan, source, 0u, name, host, launches(), columns);
}

} // namespace

SingleFiles fagen::emitSingleProgram(const KernelPlan &plan, const ir::Program &program, StringRef source,
                                     StringRef name) {
  return SingleProgramEmitter(plan, program, source, name).run();
}

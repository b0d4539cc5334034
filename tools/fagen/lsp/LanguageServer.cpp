// fagen: `fagen lsp`: specs in editors that speak the language server protocol: mistakes, layout, words, meanings.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Command.h"
#include "JsonRpc.h"
#include "Mistakes.h"
#include "SpecHelp.h"
#include "fagen/Parse/Format.h"
#include "fagen/Support/Diagnostics.h"
#include "fagen/Support/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace llvm;

namespace fagen {

static constexpr const char kLspExamples[] = R"(
An editor starts it and talks to it on standard input and output. Mistakes are those of the checks of specs, as shared memory
that does not suffice; `fagen check` also proves the barriers.

EXAMPLES:
  vim.lsp.start({name = "fagen", cmd = {"fagen", "lsp"}})
      Neovim, for a buffer of a .fa file

EXIT CODES: 0 the editor said shutdown, then exit; 1 it left without.
)";

namespace {

constexpr int kParseError = -32700, kMethodNotFound = -32601;
constexpr int kKeywordKind = 14; // of a completion

class LanguageServer {
public:
  ExitCode run();

private:
  void handle(const json::Object &message);
  void answer(StringRef method, const json::Value &id, const json::Object &params);
  void notice(StringRef method, const json::Object &params);
  void publish(StringRef uri);
  json::Value format(StringRef text) const;
  json::Value hover(StringRef text, size_t offset) const;
  json::Value complete(StringRef text, size_t offset) const;
  json::Value mend(StringRef text, const json::Object &params) const;

  StringMap<std::string> texts; ///< by URI
  bool isShutDown = false, isDone = false;
};

} // namespace

/// The offset of `position` of the params; the text's end for a place after it.
static size_t offsetIn(StringRef text, const json::Object &params) {
  const json::Object *position = params.getObject("position");
  const int64_t line = position ? position->getInteger("line").value_or(0) : 0;
  const int64_t character = position ? position->getInteger("character").value_or(0) : 0;
  size_t begin = 0;
  for (int64_t i = 0; i < line; ++i) {
    const size_t end = text.find('\n', begin);
    if (end == StringRef::npos)
      return text.size();
    begin = end + 1;
  }
  return std::min(text.size(), begin + size_t(std::max<int64_t>(character, 0)));
}

static StringRef uriOf(const json::Object &params) {
  const json::Object *document = params.getObject("textDocument");
  return document ? document->getString("uri").value_or("") : "";
}

void LanguageServer::publish(StringRef uri) {
  json::Array found;
  if (const auto text = texts.find(uri); text != texts.end())
    for (const json::Object &mistake : mistakesIn(text->second))
      found.push_back(diagnosticOf(mistake));
  writeMessage(json::Object{{"method", "textDocument/publishDiagnostics"},
                            {"params", json::Object{{"uri", uri}, {"diagnostics", std::move(found)}}}});
}

/// One edit of the whole text, none where it is laid out, null where it has mistakes.
json::Value LanguageServer::format(StringRef text) const {
  SourceMgr sources;
  const unsigned id = sources.AddNewSourceBuffer(MemoryBuffer::getMemBufferCopy(text, "spec.fa"), SMLoc());
  Diagnostics silent(sources, nulls());
  const std::optional<std::string> formatted = formatSpec(sources.getMemoryBuffer(id)->getBuffer(), silent);
  if (!formatted)
    return nullptr;
  if (text == *formatted)
    return json::Array();
  const json::Object whole =
      rangeOf(json::Object{{"line", 1}, {"column", 1}, {"endLine", int64_t(text.count('\n')) + 2}, {"endColumn", 1}});
  return json::Array{json::Object{{"range", json::Object(whole)}, {"newText", *formatted}}};
}

json::Value LanguageServer::hover(StringRef text, size_t offset) const {
  const std::string meaning = meaningAt(text, offset);
  if (meaning.empty())
    return nullptr;
  return json::Object{{"contents", json::Object{{"kind", "markdown"}, {"value", meaning}}}};
}

json::Value LanguageServer::complete(StringRef text, size_t offset) const {
  json::Array items;
  for (const SuggestedWord &word : wordsAt(text, offset))
    items.push_back(json::Object{{"label", word.text}, {"detail", word.help}, {"kind", kKeywordKind}});
  return items;
}

/// The line of an end of the params' range; -1 where it has none.
static int64_t lineIn(const json::Object &params, StringRef end) {
  const json::Object *range = params.getObject("range"), *place = range ? range->getObject(end) : nullptr;
  return place ? place->getInteger("line").value_or(-1) : -1;
}

/// What mends the mistakes that begin in the range's lines.
json::Value LanguageServer::mend(StringRef text, const json::Object &params) const {
  json::Array actions;
  for (const json::Object &mistake : mistakesIn(text)) {
    const int64_t line = mistake.getInteger("line").value_or(0) - 1;
    if (line >= lineIn(params, "start") && line <= lineIn(params, "end"))
      for (json::Value &fix : quickFixesOf(mistake, uriOf(params)))
        actions.push_back(std::move(fix));
  }
  return actions;
}

/// Columns count bytes, where the editor can; UTF-16, which it takes otherwise, is the same for ASCII.
static json::Object capabilities(const json::Object &params) {
  json::Object ours{{"textDocumentSync", 1}, // whole texts
                    {"documentFormattingProvider", true},
                    {"hoverProvider", true},
                    {"codeActionProvider", json::Object{{"codeActionKinds", json::Array{"quickfix"}}}},
                    {"completionProvider", json::Object()}};
  const json::Object *client = params.getObject("capabilities");
  const json::Object *general = client ? client->getObject("general") : nullptr;
  const json::Array *encodings = general ? general->getArray("positionEncodings") : nullptr;
  if (encodings && is_contained(*encodings, json::Value("utf-8")))
    ours["positionEncoding"] = "utf-8";
  return ours;
}

void LanguageServer::answer(StringRef method, const json::Value &id, const json::Object &params) {
  const auto found = texts.find(uriOf(params));
  const StringRef text = found == texts.end() ? StringRef() : StringRef(found->second);
  json::Value result = nullptr;
  if (method == "initialize")
    result = json::Object{{"capabilities", capabilities(params)},
                          {"serverInfo", json::Object{{"name", "fagen"}, {"version", FAGEN_VERSION}}}};
  else if (method == "shutdown")
    isShutDown = true;
  else if (method == "textDocument/formatting")
    result = format(text);
  else if (method == "textDocument/hover")
    result = hover(text, offsetIn(text, params));
  else if (method == "textDocument/completion")
    result = complete(text, offsetIn(text, params));
  else if (method == "textDocument/codeAction")
    result = mend(text, params);
  else
    return writeMessage(json::Object{
        {"id", id},
        {"error", json::Object{{"code", kMethodNotFound}, {"message", "fagen has no '" + method.str() + "'"}}}});
  writeMessage(json::Object{{"id", id}, {"result", std::move(result)}});
}

void LanguageServer::notice(StringRef method, const json::Object &params) {
  const StringRef uri = uriOf(params);
  if (method == "exit") {
    isDone = true;
  } else if (method == "textDocument/didOpen") {
    texts[uri] = params.getObject("textDocument")->getString("text").value_or("").str(); // uriOf found the object
    publish(uri);
  } else if (method == "textDocument/didChange") {
    const json::Array *changes = params.getArray("contentChanges");
    const json::Object *last = changes && !changes->empty() ? changes->back().getAsObject() : nullptr;
    if (last)
      texts[uri] = last->getString("text").value_or("").str();
    publish(uri);
  } else if (method == "textDocument/didClose") {
    texts.erase(uri);
    publish(uri);
  }
}

void LanguageServer::handle(const json::Object &message) {
  static const json::Object kNone;
  const StringRef method = message.getString("method").value_or("");
  const json::Object *params = message.getObject("params");
  if (const json::Value *id = message.get("id"); id && !method.empty())
    answer(method, *id, params ? *params : kNone);
  else if (!method.empty() && (method == "exit" || (params && !uriOf(*params).empty())))
    notice(method, params ? *params : kNone);
}

ExitCode LanguageServer::run() {
  while (!isDone) {
    const std::optional<std::string> body = readMessage();
    if (!body)
      break;
    Expected<json::Value> value = parseJson(*body);
    if (value && value->getAsObject()) {
      handle(*value->getAsObject());
      continue;
    }
    if (!value)
      consumeError(value.takeError());
    writeMessage(json::Object{
        {"id", nullptr}, {"error", json::Object{{"code", kParseError}, {"message", "this is not a JSON object"}}}});
  }
  return isDone && isShutDown ? kDone : kUserMistake;
}

namespace {

class LspCommand : public Command {
public:
  LspCommand() : Command("lsp", "serve editors: mistakes, layout, words, meanings", kLspExamples) {}
  ExitCode run(const char *) override { return LanguageServer().run(); }
};

} // namespace

std::unique_ptr<Command> makeLspCommand() { return std::make_unique<LspCommand>(); }

} // namespace fagen

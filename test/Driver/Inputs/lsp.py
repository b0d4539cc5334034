# fagen: talks to `fagen lsp` as an editor does, and prints what it says.
import json
import subprocess

SPEC = """target sm_89;
kernel k {
  problem { dtype = f17; head_dim = 64; mask = causal; }
  schedule {
    tile = 64 x 64; warps = 4; mma = mma_sync;
    when mask == causal { copy = tma; }
  }
}
"""
URI = "file:///k.fa"


class Editor:
    def __init__(self):
        self.process = subprocess.Popen(["fagen", "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.number = 0

    def send(self, body):
        data = body.encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        self.process.stdin.flush()

    def receive(self):
        length = int(self.process.stdout.readline().split(b":")[1])
        assert self.process.stdout.readline() == b"\r\n"
        return json.loads(self.process.stdout.read(length))

    def notify(self, method, **params):
        self.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))

    def ask(self, method, **params):
        self.number += 1
        self.send(json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}))
        answer = self.receive()
        assert answer["id"] == self.number
        return answer.get("result", answer.get("error"))

    def at(self, method, text, word):
        """Asks about the end of the first `word` in the text."""
        before = text[:text.index(word) + len(word)]
        position = {"line": before.count("\n"), "character": len(before) - before.rfind("\n") - 1}
        return self.ask(method, textDocument={"uri": URI}, position=position)


def show(published):
    for found in published["params"]["diagnostics"]:
        start, end = found["range"]["start"], found["range"]["end"]
        print("diagnostic", start["line"], start["character"], end["character"], found["severity"], found["message"])
    if not published["params"]["diagnostics"]:
        print("no diagnostics")


editor = Editor()
print("capabilities", sorted(editor.ask("initialize", capabilities={"general": {"positionEncodings": ["utf-16", "utf-8"]}})["capabilities"].items()))
editor.notify("initialized")
editor.notify("textDocument/didOpen", textDocument={"uri": URI, "languageId": "fagen", "version": 1, "text": SPEC})
show(editor.receive())
print("dtypes", [item["label"] for item in editor.at("textDocument/completion", SPEC, "dtype = ")])
print("keys", [item["label"] for item in editor.at("textDocument/completion", SPEC, "mma_sync;")][:3])
print("in when", [item["label"] for item in editor.at("textDocument/completion", SPEC, "copy = t")])
print("targets", [item["label"] for item in editor.at("textDocument/completion", SPEC, "target ")][:2])
print("hover", editor.at("textDocument/hover", SPEC, "tile")["contents"]["value"])
print("hover", editor.at("textDocument/hover", SPEC, "= tma")["contents"]["value"])
print("hover", editor.at("textDocument/hover", SPEC, "== causal"))


def fixes(first, last):
    """Quick fixes of the mistakes in these lines: title, place, text."""
    places = {"start": {"line": first, "character": 0}, "end": {"line": last, "character": 0}}
    for action in editor.ask("textDocument/codeAction", textDocument={"uri": URI}, range=places, context={"diagnostics": []}):
        (edit,) = action["edit"]["changes"][URI]
        start, end = edit["range"]["start"], edit["range"]["end"]
        print("fix", action["kind"], action["title"], start["line"], start["character"], end["character"], repr(edit["newText"]),
              "of", action["diagnostics"][0]["message"].splitlines()[0])


fixes(2, 2)
fixes(3, 8)
fixed = SPEC.replace("f17", "f16").replace("tma", "cp_async")
editor.notify("textDocument/didChange", textDocument={"uri": URI, "version": 2}, contentChanges=[{"text": fixed}])
show(editor.receive())
(edit,) = editor.ask("textDocument/formatting", textDocument={"uri": URI}, options={})
print("formatted", edit["newText"].splitlines()[4:6], edit["range"]["start"], edit["range"]["end"]["line"])
editor.notify("textDocument/didChange", textDocument={"uri": URI, "version": 3}, contentChanges=[{"text": edit["newText"]}])
show(editor.receive())
print("again", editor.ask("textDocument/formatting", textDocument={"uri": URI}, options={}))
editor.notify("textDocument/didChange", textDocument={"uri": URI, "version": 4}, contentChanges=[{"text": "kernel {"}])
editor.receive()
editor.notify("textDocument/didChange", textDocument={"uri": URI, "version": 5}, contentChanges=[{"text": fixed.replace("mma = mma_sync;", "mma = mma_sync")}])
editor.receive()
fixes(4, 4)
editor.notify("textDocument/didChange", textDocument={"uri": URI, "version": 6}, contentChanges=[{"text": "kernel {"}])
editor.receive()
print("mistakes", editor.ask("textDocument/formatting", textDocument={"uri": URI}, options={}))
print("unknown", editor.ask("textDocument/rename"))
print("no document", editor.ask("textDocument/hover"))
editor.send("{")
print("no json", editor.receive()["error"]["message"])
editor.notify("textDocument/didClose", textDocument={"uri": URI})
show(editor.receive())
print("shutdown", editor.ask("shutdown"))
editor.notify("exit")
print("exit code", editor.process.wait())
other = Editor()
other.process.stdin.close()
print("left without", other.process.wait())

// fagen: VS Code's side of `fagen lsp`: mistakes with quick fixes, layout, the words that may stand at a place, what they mean.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// It needs nothing but VS Code: the protocol's few messages are written here. The setting fagen.path names the program.
'use strict';
const vscode = require('vscode');
const childProcess = require('child_process');

/** One `fagen lsp`: requests with answers, notices in both directions. */
class Server {
  constructor(program, onNotice, onEnd) {
    this.process = childProcess.spawn(program, ['lsp'], {stdio: ['pipe', 'pipe', 'ignore']});
    this.onNotice = onNotice;
    this.waiting = new Map();
    this.number = 0;
    this.input = Buffer.alloc(0);
    this.process.stdout.on('data', (data) => this.read(data));
    this.process.stdin.on('error', () => {}); // told by 'exit'
    this.process.on('error', onEnd);
    this.process.on('exit', (code) => code && onEnd(new Error(`it ended with ${code}`)));
  }

  write(message) {
    const body = Buffer.from(JSON.stringify({jsonrpc: '2.0', ...message}));
    this.process.stdin.write(`Content-Length: ${body.length}\r\n\r\n`);
    this.process.stdin.write(body);
  }

  notify(method, params) { this.write({method, params}); }

  ask(method, params) {
    const id = ++this.number;
    this.write({id, method, params});
    return new Promise((resolve) => this.waiting.set(id, resolve));
  }

  read(data) {
    this.input = Buffer.concat([this.input, data]);
    for (;;) {
      const head = this.input.indexOf('\r\n\r\n');
      if (head < 0) return;
      const length = Number(/Content-Length: *(\d+)/i.exec(this.input.toString('latin1', 0, head))[1]);
      const end = head + 4 + length;
      if (this.input.length < end) return;
      const message = JSON.parse(this.input.toString('utf8', head + 4, end));
      this.input = this.input.subarray(end);
      this.take(message);
    }
  }

  take(message) {
    if (message.id === undefined || message.id === null) {
      if (message.method) this.onNotice(message.method, message.params);
      return;
    }
    const resolve = this.waiting.get(message.id);
    this.waiting.delete(message.id);
    if (resolve) resolve(message.result === undefined ? null : message.result);
  }
}

const rangeOf = (range) => new vscode.Range(range.start.line, range.start.character, range.end.line, range.end.character);
const placeOf = (place) => ({line: place.line, character: place.character});

function diagnosticOf(found) {
  const severities = [vscode.DiagnosticSeverity.Error, vscode.DiagnosticSeverity.Warning, vscode.DiagnosticSeverity.Information];
  const diagnostic = new vscode.Diagnostic(rangeOf(found.range), found.message, severities[found.severity - 1]);
  diagnostic.source = found.source;
  return diagnostic;
}

function actionOf(action) {
  const made = new vscode.CodeAction(action.title, vscode.CodeActionKind.QuickFix);
  made.edit = new vscode.WorkspaceEdit();
  made.diagnostics = action.diagnostics.map(diagnosticOf);
  made.isPreferred = action.isPreferred;
  for (const [uri, edits] of Object.entries(action.edit.changes))
    for (const edit of edits) made.edit.replace(vscode.Uri.parse(uri), rangeOf(edit.range), edit.newText);
  return made;
}

/** What VS Code asks for, as requests of the protocol. */
function providers(server) {
  const at = (document, more) => ({textDocument: {uri: document.uri.toString()}, ...more});
  return [
    vscode.languages.registerHoverProvider('fagen', {
      async provideHover(document, position) {
        const hover = await server.ask('textDocument/hover', at(document, {position: placeOf(position)}));
        return hover && new vscode.Hover(new vscode.MarkdownString(hover.contents.value));
      }
    }),
    vscode.languages.registerCompletionItemProvider('fagen', {
      async provideCompletionItems(document, position) {
        const items = await server.ask('textDocument/completion', at(document, {position: placeOf(position)}));
        return (items || []).map(({label, detail}) => {
          const item = new vscode.CompletionItem(label, vscode.CompletionItemKind.Keyword);
          item.detail = detail;
          return item;
        });
      }
    }),
    vscode.languages.registerDocumentFormattingEditProvider('fagen', {
      async provideDocumentFormattingEdits(document) {
        const edits = await server.ask('textDocument/formatting', at(document, {options: {}}));
        return (edits || []).map((edit) => vscode.TextEdit.replace(rangeOf(edit.range), edit.newText));
      }
    }),
    vscode.languages.registerCodeActionsProvider('fagen', {
      async provideCodeActions(document, range) {
        const asked = {range: {start: placeOf(range.start), end: placeOf(range.end)}, context: {diagnostics: []}};
        return (await server.ask('textDocument/codeAction', at(document, asked)) || []).map(actionOf);
      }
    }, {providedCodeActionKinds: [vscode.CodeActionKind.QuickFix]})
  ];
}

let server = null;

async function activate(context) {
  const program = vscode.workspace.getConfiguration('fagen').get('path') || 'fagen';
  const mistakes = vscode.languages.createDiagnosticCollection('fagen');
  server = new Server(program, (method, params) => {
    if (method === 'textDocument/publishDiagnostics') mistakes.set(vscode.Uri.parse(params.uri), params.diagnostics.map(diagnosticOf));
  }, (error) => {
    vscode.window.showErrorMessage(`fagen: '${program} lsp' does not run: ${error.message}. The setting fagen.path names the program.`);
  });
  await Promise.race([server.ask('initialize', {capabilities: {}}), new Promise((resolve) => server.process.on('error', resolve))]);
  server.notify('initialized', {});

  const open = (document) => document.languageId === 'fagen' &&
    server.notify('textDocument/didOpen', {textDocument: {uri: document.uri.toString(), languageId: 'fagen', version: document.version, text: document.getText()}});
  vscode.workspace.textDocuments.forEach(open);
  context.subscriptions.push(
    mistakes, ...providers(server), vscode.workspace.onDidOpenTextDocument(open),
    vscode.workspace.onDidChangeTextDocument(({document}) => document.languageId === 'fagen' &&
      server.notify('textDocument/didChange', {textDocument: {uri: document.uri.toString(), version: document.version}, contentChanges: [{text: document.getText()}]})),
    vscode.workspace.onDidCloseTextDocument((document) => document.languageId === 'fagen' &&
      server.notify('textDocument/didClose', {textDocument: {uri: document.uri.toString()}})));
}

async function deactivate() {
  if (!server) return;
  await server.ask('shutdown', {});
  server.notify('exit', {});
}

module.exports = {activate, deactivate};

// fagen: as much of VS Code as editors/extension.js asks for, and an editor that opens a spec with a mistake and mends it.
// vscode.js EXTENSION PROGRAM
'use strict';
const Module = require('module');
const [, , extension, program] = process.argv;

class Range { constructor(a, b, c, d) { this.start = {line: a, character: b}; this.end = {line: c, character: d}; } }
const handlers = {}, shown = [], providers = {}, published = [];
const registers = (name) => (_, provider) => (providers[name] = provider);
const on = (name) => (handler) => (handlers[name] = handler);
const document = {languageId: 'fagen', version: 1, uri: {toString: () => 'file:///k.fa'}, text: `target sm_89;
kernel k {
  problem { dtype = f17; head_dim=64; mask = none; }
  schedule { tile = 64 x 64; warps = 4; mma = mma_sync; copy = cp_async; stages = 2; }
}
`, getText() { return this.text; }};
let arrived = null;
const vscode = {
  Range, Uri: {parse: (uri) => uri}, MarkdownString: String, Hover: class { constructor(text) { this.text = text; } },
  DiagnosticSeverity: {Error: 'error', Warning: 'warning', Information: 'information'},
  Diagnostic: class { constructor(range, message, severity) { Object.assign(this, {range, message, severity}); } },
  CodeAction: class { constructor(title) { this.title = title; } }, CodeActionKind: {QuickFix: 'quickfix'},
  CompletionItem: class { constructor(label) { this.label = label; } }, CompletionItemKind: {Keyword: 1},
  TextEdit: {replace: (range, text) => ({range, text})},
  WorkspaceEdit: class { replace(uri, range, text) { Object.assign(this, {range, text}); } },
  window: {showErrorMessage: (text) => shown.push(text)},
  languages: {
    createDiagnosticCollection: () => ({set: (uri, found) => { published.push(found); if (arrived) arrived(); }}),
    registerHoverProvider: registers('hover'), registerCompletionItemProvider: registers('completion'),
    registerDocumentFormattingEditProvider: registers('format'), registerCodeActionsProvider: registers('actions')
  },
  workspace: {
    textDocuments: [document], getConfiguration: () => ({get: () => program}), onDidOpenTextDocument: on('open'),
    onDidChangeTextDocument: on('change'), onDidCloseTextDocument: on('close')
  }
};
const load = Module._load;
Module._load = (name, ...rest) => (name === 'vscode' ? vscode : load(name, ...rest));
const {activate, deactivate} = require(extension);
const next = () => new Promise((resolve) => (arrived = resolve));

async function main() {
  const first = next();
  await activate({subscriptions: []});
  if (shown.length) return console.log('shown', shown[0]);
  await first;
  console.log('mistake', published[0][0].severity, published[0][0].message);
  const [action] = await providers.actions.provideCodeActions(document, new Range(2, 0, 2, 1));
  console.log('action', action.title, JSON.stringify(action.edit.range), action.edit.text);
  console.log('hover', (await providers.hover.provideHover(document, {line: 3, character: 14})).text.slice(0, 9));
  console.log('words', (await providers.completion.provideCompletionItems(document, {line: 2, character: 20})).map((item) => item.label).includes('bf16'));
  const second = next();
  document.text = document.text.replace('f17', 'f16');
  handlers.change({document});
  await second;
  console.log('mistakes', published[1].length);
  console.log('layout', (await providers.format.provideDocumentFormattingEdits(document)).length);
  handlers.close(document);
  await deactivate();
}
main();

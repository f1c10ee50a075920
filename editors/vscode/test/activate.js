// Runs the packed extension without VS Code: activate.js EXTENSION TEA FILE starts `tea lsp` through it, opens
// FILE, and prints a line of JSON with its findings, the hover of its first line, and the registered commands.
'use strict';

const fs = require('fs');
const Module = require('module');
const path = require('path');
const { pathToFileURL } = require('url');

const [extension, tea, file] = process.argv.slice(2);

class Uri {
  constructor(text) { Object.assign(this, { text, scheme: 'file', path: new URL(text).pathname, fsPath: new URL(text).pathname }); }
  static parse(text) { return new Uri(text); }
  static file(name) { return new Uri(pathToFileURL(name).href); }
  toString() { return this.text; }
}

class Position { constructor(line, character) { Object.assign(this, { line, character }); } }
class Range { constructor(...at) { Object.assign(this, { start: new Position(at[0], at[1]), end: new Position(at[2], at[3]) }); } }

const disposable = () => ({ dispose() {} });
const registered = { commands: [], providers: {} };
let found;
const findings = new Promise((resolve) => { found = resolve; });

const doc = {
  uri: Uri.file(file), fileName: file, languageId: 'yaml', version: 1, isClosed: false, isDirty: false,
  getText: () => fs.readFileSync(file, 'utf8'),
};

// Anything else is a class, whose members are functions that do nothing.
const nothing = () => new Proxy(class {}, { get: (target, name) => (name in target ? target[name] : name === 'then' ? undefined : () => disposable()) });
const partial = (known) => new Proxy(known, {
  get: (target, name) => target[name] ?? (/^(on[A-Z]|register|create)/.test(String(name)) ? (() => disposable()) : target[name]),
});

const vscode = {
  version: '1.104.0', Uri, Position, Range,
  env: partial({ appName: 'test', language: 'en', appHost: 'desktop' }),
  window: partial({
    activeTextEditor: { document: doc }, visibleTextEditors: [{ document: doc }],
    tabGroups: partial({ all: [] }),
    createOutputChannel: () => partial({ append() {}, appendLine: console.error, info: console.error, warn: console.error, error: console.error, trace() {}, show() {}, dispose() {} }),
    showErrorMessage: async (message) => { console.error(message); },
  }),
  workspace: partial({
    textDocuments: [doc], notebookDocuments: [], workspaceFolders: [{ uri: Uri.file(path.dirname(file)), name: 'w', index: 0 }],
    fs: { isWritableFileSystem: () => true },
    getConfiguration: () => ({ get: (key) => ({ path: tea, arguments: [] })[key] }),
    getWorkspaceFolder: () => undefined,
  }),
  languages: partial({
    match: (selector, document) => (selector.some((s) => s.language === document.languageId) ? 10 : 0),
    createDiagnosticCollection: () => ({
      set: (uri, list) => found({ file: uri.fsPath, findings: list.map((d) => ({ line: d.range.start.line + 1, code: String(d.code?.value ?? d.code), message: d.message })) }),
      delete() {}, clear() {}, dispose() {},
    }),
    registerHoverProvider: (selector, provider) => { registered.providers.hover = provider; return disposable(); },
  }),
  commands: partial({
    registerCommand: (name) => { registered.commands.push(name); return disposable(); },
    executeCommand: async () => undefined,
  }),
  CancellationTokenSource: class { constructor() { this.token = { isCancellationRequested: false, onCancellationRequested: () => disposable() }; } cancel() {} dispose() {} },
  EventEmitter: class { constructor() { this.listeners = []; this.event = (f) => { this.listeners.push(f); return disposable(); }; } fire(e) { this.listeners.forEach((f) => f(e)); } dispose() {} },
  Disposable: class { constructor(f) { this.dispose = f ?? (() => {}); } static from(...all) { return { dispose: () => all.forEach((d) => d.dispose()) }; } },
  MarkdownString: class { constructor(value) { this.value = value ?? ''; } appendMarkdown(text) { this.value += text; return this; } appendCodeblock(text) { this.value += text; return this; } },
  Diagnostic: class { constructor(range, message, severity) { Object.assign(this, { range, message, severity }); } },
  Hover: class { constructor(contents, range) { Object.assign(this, { contents: [contents].flat(), range }); } },
};
const api = new Proxy(vscode, { get: (target, name) => { target[name] ??= nothing(); return target[name]; } });

const load = Module._load;
Module._load = (request, ...rest) => (request === 'vscode' ? api : load(request, ...rest));

(async () => {
  const { activate, deactivate } = require(extension);
  await activate({ subscriptions: [] });
  const result = await findings;
  const hover = await registered.providers.hover.provideHover(doc, new Position(2, 17), new vscode.CancellationTokenSource().token);
  await deactivate();
  console.log(JSON.stringify({ ...result, commands: registered.commands, hover: hover?.contents.map((c) => c.value ?? c).join('\n') ?? null }));
})().catch((error) => { console.error(error); process.exit(1); });

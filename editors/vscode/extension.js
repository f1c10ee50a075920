'use strict';

const { commands, workspace } = require('vscode');
const { LanguageClient } = require('vscode-languageclient/node');

let client;

function start() {
  const settings = workspace.getConfiguration('tea');
  const server = { command: settings.get('path'), args: ['lsp', ...settings.get('arguments')] };
  // tea lsp leaves YAML files alone that are not workflows.
  client = new LanguageClient('tea', server, { documentSelector: [{ scheme: 'file', language: 'yaml' }] });
  return client.start();
}

async function restart() {
  await client?.stop().catch(() => {}); // one that has not started
  await start();
}

exports.activate = (context) => {
  const changed = workspace.onDidChangeConfiguration((event) => event.affectsConfiguration('tea') && restart());
  context.subscriptions.push(commands.registerCommand('tea.restart', restart), changed);
  return start();
};

exports.deactivate = () => client?.stop();

// Package lsp is the command lsp: a language server for workflow files (LSP 3.17 on
// standard input and output). Start with [Command]; server.go has the life cycle and the
// open documents, conn.go the messages on the wire, diagnostics.go what `tea validate`
// says about the open text. It writes no files.
package lsp

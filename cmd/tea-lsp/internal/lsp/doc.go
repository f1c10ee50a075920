// Package lsp is the command lsp: a language server for workflow files (LSP 3.17 on
// standard input and output). Start with [Command]; server.go has the life cycle and the
// open documents, conn.go the messages on the wire, diagnostics.go what `tea validate`
// says about the open text. cursor.go finds out where the cursor is in a text that need not
// be valid, for completion.go and hover.go; outline.go has the names of a document, for
// navigate.go. It writes no files.
package lsp

// Package extract converts a server's response to a document: the main content as
// Markdown, HTML or text, links and metadata. It reads HTML in any charset, PDF and
// plain text.
//
// Start with [Parse].
package extract

// Package d1 has the memory in a Cloudflare D1 database. Start with [Option].
//
// It speaks Cloudflare's REST API: one request is one transaction.
package d1

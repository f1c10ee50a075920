// Package d1 stores the memory in a Cloudflare D1 database. Start with [Option].
//
// It uses Cloudflare's REST API: one request is one transaction.
package d1

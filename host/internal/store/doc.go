// Package store has the bundles that are installed for a user: each one in a
// read-only directory named after the digest of its record, and a link for each
// plugin to its active version.
//
//	tea/plugins/tea-plugin-NAME      link to ../store/DIGEST/tea-plugin-NAME
//	tea/store/DIGEST/record.json     what the entry contains; its SHA-256 is DIGEST
//	tea/store/DIGEST/...             the plugin's files, bundle.json, documents
//	tea/store/history/NAME.json      the versions that were active, for rollback
//
// Every change is atomic and durable: after a crash at any instant a plugin has
// its old or its new version. Changes by several processes are serialized.
//
// Start with [Store.Install].
package store

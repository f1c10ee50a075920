// Package firestore stores the memory in Google Cloud Firestore. Start with [Option].
//
// It uses the REST API: one call is one request that reads, followed by one commit if it writes. The preconditions of a
// commit are the times of the documents' last changes. It also creates a document with the id of the call in tea-ops,
// which makes it idempotent. See change.
//
// The collections are agent_memory, sessions, ducklake_tables, ducklake_files, ducklake_snapshots and tea_KIND with the
// documents of the MetadataStore, ltm with the entries, embeddings with the vectors, and ducklake_inlined with the rows
// of data.*. tea-changes has the change numbers of records for archives and memory.sync; see number. Queries do not
// need composite indexes.
package firestore

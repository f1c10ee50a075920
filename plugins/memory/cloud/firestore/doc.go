// Package firestore has the memory in Google Cloud Firestore. Start with
// [Option].
//
// It speaks the REST API: one call is one request that reads, followed by one
// commit if it writes. A commit has preconditions, the times of the documents'
// last changes, and creates a document with the id of the call in tea-ops: sent
// again after a lost answer, it changes nothing. See write.
//
// The collections are agent_memory, sessions, ducklake_tables, ducklake_files,
// ducklake_snapshots and tea_KIND with the documents of the MetadataStore, ltm
// with the entries, embeddings with the vectors, and ducklake_inlined with the rows
// of data.*. tea-changes has the numbers of the records for archives and memory.sync;
// see number. No query needs a composite
// index.
package firestore

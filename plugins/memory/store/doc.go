// Package store is the contract between the actions and the databases of a
// memory. Every engine is a [Driver], the embedded ones too: a database of rows,
// on which the plugin builds what actions use, [LongTermMemory], [MetadataStore]
// and [VectorIndex]. [BlobStorage] has large contents, and [QueryEngine] is the
// SQL of the embedded databases. Package storetest has a conformance suite for
// each; a new engine implements Driver and passes its suite. A program adds it to
// the memory's bundle as a [Backend], or a storage as a [BlobBackend].
//
// Times are instants in UTC with microseconds. Values are the value model of
// package sdk/value. Errors that a workflow can see are *tea.Error; callers
// branch only on [ErrNotFound] and [ErrConflict].
package store

// Package store is the contract between the actions and the backends of their
// data: five small interfaces, [LongTermMemory], [MetadataStore], [BlobStorage],
// [QueryEngine] and [VectorIndex]. Package storetest has a conformance suite for
// each; a new backend implements an interface and passes its suite. A program
// adds a backend to the memory's bundle as a [Backend] or [BlobBackend].
//
// Times are instants in UTC with microseconds. Values are the value model of
// package sdk/value. Errors that a workflow can see are *tea.Error; callers
// branch only on [ErrNotFound] and [ErrConflict].
package store

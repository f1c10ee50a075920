// Package storetest has a conformance suite for each interface of package
// store: a backend that passes it can take the place of any other. Each suite
// takes a function that opens the backend; what it opens with the same name
// is the same data.
//
// [Faults] makes engines and blobs fail where a test wants, as a crash would.
package storetest

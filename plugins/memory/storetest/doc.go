// Package storetest has a conformance suite for each interface of package
// store: a backend that passes it can take the place of any other. Each suite
// takes a function that opens the backend, which opens the same data at each call
// of a test.
//
// [Faults] makes engines and blobs fail at chosen steps, as a crash would.
package storetest

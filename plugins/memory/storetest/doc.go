// Package storetest has a conformance suite for each interface of package store: a backend that passes it can replace
// any other. Each suite takes a function that opens the backend. All calls of this function in one test open the same
// data.
//
// [Faults] makes engines and blobs fail at chosen steps, as a crash would.
package storetest

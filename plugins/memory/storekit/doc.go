// Package storekit evaluates conditions and orders of documents for databases that
// cannot. A MetadataStore that uses it finds the same documents as the stores of this
// module. Its use is optional.
//
// Start with [Select].
package storekit

// Package cozo is the backend cozo: a graph in CozoDB, whose language is
// Datalog. It needs a static library, which scripts/cozo builds with cargo from
// the crate in plugins/graph/cozo, and the build tag cozo. Start with [Open]; in
// a build without the tag it fails and says what is missing.
//
// engine.go is the C ABI, codec.go the encoding of parameters and results,
// schema.go the relations of a database. Queries of users are in query.go; the
// crate refuses what they must not do, after the engine has parsed them.
package cozo

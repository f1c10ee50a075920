// Package cozo is the backend cozo: a graph in CozoDB, whose language is
// Datalog. It needs the build tag cozo and a static library, which scripts/cozo
// builds with cargo from the crate in plugins/graph/cozo. Start with [Open]; in
// a build without the tag it returns an error that names what is missing.
//
// engine.go is the C ABI, codec.go the encoding of parameters and results,
// schema.go the relations of a database. Queries of users are in query.go; the
// crate refuses forbidden operations after the engine has parsed a query.
package cozo

// Package engine runs the embedded databases: it implements
// [store.QueryEngine] over database/sql for the drivers in engine/duckdb and
// engine/sqlite.
//
// Start with [Open]. An [Engine] locks its folder (owner.go), opens the database
// at the first call and migrates its schema (lifecycle.go, session.go, package
// schema), groups the commits of concurrent writers (writer.go), and guards every
// call with retries and a circuit breaker (guard.go).
package engine

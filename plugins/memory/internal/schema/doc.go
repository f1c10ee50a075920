// Package schema has the tables of the memory and migrates databases to them.
// The folders duckdb and sqlite have one file per version. A released file never
// changes; a new version is a new file in both folders.
package schema

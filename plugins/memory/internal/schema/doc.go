// Package schema holds the tables of the memory and brings a database up to
// date. The folders duckdb and sqlite hold one file a version; a file that was
// released is never changed, a new version is a new file in both.
package schema

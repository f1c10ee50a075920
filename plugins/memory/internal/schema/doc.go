// Package schema has the tables of the memory and brings a database up to
// date. The folders duckdb and sqlite contain one file per version; a file that was
// released is never changed, and a new version is a new file in both.
package schema

// Package catalog knows which tables there are, of which files they consist
// and of which they did: tables, files and snapshots are documents of a
// [store.MetadataStore]. Start with [New].
//
// The tables of package tabular are in the catalog too; only that package
// changes those.
package catalog

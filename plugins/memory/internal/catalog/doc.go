// Package catalog describes tables, the files that they consist of, and the
// files of earlier times: tables, files and snapshots are documents of a
// [store.MetadataStore]. Start with [New].
//
// The tables of package tabular are in the catalog too, as managed tables. Only
// that package changes them.
package catalog

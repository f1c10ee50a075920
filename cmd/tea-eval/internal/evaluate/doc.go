// Package evaluate runs workflows on cases, grades the results and compares variants.
//
// Start with [Command], [Load] and evaluation.run. docs/guide/evaluate.md describes the
// format of the file.
package evaluate

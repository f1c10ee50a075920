// Package longterm has what all drivers share about entries of the long-term memory: checks and errors (name.go), their
// canonical form (canonical.go) and their texts for an index (fields.go).
package longterm

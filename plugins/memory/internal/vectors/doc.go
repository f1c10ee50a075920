// Package vectors has what all drivers share about items of vector collections: checks, their encoding, and their records.
package vectors

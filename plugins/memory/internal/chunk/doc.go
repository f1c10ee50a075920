// Package chunk cuts texts into pieces for embeddings and for the context of a
// model. Start with [Split].
package chunk

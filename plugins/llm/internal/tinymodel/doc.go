// Package tinymodel generates language models of half a megabyte with known answers,
// to test against real model servers. A model is a llama in the GGUF format; its
// weights only encode which word follows which.
//
// Start with [Spec.Encode].
package tinymodel

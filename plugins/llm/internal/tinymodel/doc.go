// Package tinymodel makes language models of half a megabyte whose answers are
// known beforehand, to test against real model servers. A model is a llama in
// the GGUF format; its weights encode only which word follows which.
//
// Start with [Spec.Encode].
package tinymodel

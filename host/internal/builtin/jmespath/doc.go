// Package jmespath evaluates JMESPath expressions on values of the value
// model (package sdk/value). Start with [Compile].
//
// The grammar is that of jmespath-community/go-jmespath, whose parser is used:
// JMESPath with arithmetic, let expressions and string slices. The package has
// its own evaluator because that of the library has only float64 numbers and
// loses integers, iterates over objects in random order, sorts lists of its
// caller in place and has no bounds. Here integers stay exact, objects are
// visited in the order of their keys, the data is not changed, and an
// evaluation ends with its context or after a bounded number of steps.
package jmespath

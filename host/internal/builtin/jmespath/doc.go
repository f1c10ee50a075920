// Package jmespath evaluates JMESPath expressions on values of the value
// model (package sdk/value). Start with [Compile].
//
// The grammar and the parser are those of jmespath-community/go-jmespath:
// JMESPath with arithmetic, let expressions and string slices. The evaluator is
// a different one, because the library's uses float64 for all numbers and loses
// integers, iterates over objects in random order, sorts the caller's lists in
// place and is unbounded. Here integers stay exact, objects are visited in key
// order, the data is not changed, and an evaluation ends with its context or
// after a bounded number of steps.
package jmespath

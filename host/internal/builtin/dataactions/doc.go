// Package dataactions is the host's bundle data: data.validate, data.merge
// and data.filter on values of the state. Start with [Bundle].
package dataactions

// Package shortterm keeps values in the memory of the process, within bounds
// and for as long as they were given (memory.go). A process of a plugin that is
// replaced by another one of the same host hands its values over (handover.go).
// Start with [New].
package shortterm

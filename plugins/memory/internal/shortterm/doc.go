// Package shortterm keeps values in the memory of the process, within bounds
// and with a time to live (memory.go). A plugin process that is replaced by
// another version hands its values over (handover.go).
// Start with [New].
package shortterm

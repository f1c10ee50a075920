// Package stream reads the two forms in which model servers send an answer
// piece by piece: server-sent events and JSON lines. The readers follow the
// standards and tolerate what real servers do: see [Events] and [Lines].
//
// Text that a server cut in the middle of a character is joined again by
// [Escape] and [Joiner].
package stream

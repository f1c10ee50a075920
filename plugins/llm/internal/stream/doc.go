// Package stream reads the two forms in which model servers stream an answer:
// server-sent events and JSON lines. The readers follow the standards and tolerate the
// deviations of real servers: see [Events] and [Lines].
//
// [Escape] and [Joiner] rejoin characters that a server split between pieces.
package stream

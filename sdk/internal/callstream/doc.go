// Package callstream carries calls of actions in one gRPC stream, in either
// direction between host and plugin. A unary call opens and closes a stream, which
// costs more than the rest of a small call.
//
// Start with [Caller], and with [Serve] for the other side.
package callstream

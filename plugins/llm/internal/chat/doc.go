// Package chat holds requests to models and their answers in a vendor-neutral form.
// A [Provider] converts a [Request] to its server's protocol, and the server's answer
// to an [Answer].
//
// Start with [Provider]. The types are plain data; a request is shared between
// attempts, and providers must not change it.
package chat

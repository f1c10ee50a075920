// Package chat holds requests to models and their answers in a form that
// belongs to no vendor. A [Provider] turns a [Request] into its server's
// protocol and the server's answer into an [Answer].
//
// Start with [Provider]. The types are plain data; a request is shared between
// tries and must not be changed by a provider.
package chat

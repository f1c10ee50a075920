// Package httpapi sends requests to the HTTP API of a server, such as a model server or a
// search engine: it retries transient failures, enforces limits of time and size, and
// reports failures as *tea.Error without the secrets in the request.
//
// Start with [Server.Do], or [Server.Post] for a request with a JSON body.
package httpapi

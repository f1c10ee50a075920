// Package httpactions is the host's bundle http: http.get, post, put, patch,
// delete and request. Start with [Bundle]; a [client] holds the connections for
// one set of settings.
//
// settings.http.allow_hosts restricts requests, including redirects, and a
// redirect to another host does not send the caller's headers. The size of a
// response is limited after decompression.
package httpactions

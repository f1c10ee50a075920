// Package httpactions is the host's bundle http: http.get, post, put, patch,
// delete and request. Start with [Bundle]; a [client] holds the connections
// of one set of settings.
//
// What goes out is held back by settings.http.allow_hosts, also on redirects,
// and a redirect to another host takes none of the caller's headers along.
// What comes in is limited in size after decompression.
package httpactions

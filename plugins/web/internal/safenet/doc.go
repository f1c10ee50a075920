// Package safenet keeps requests from reaching addresses that are not public:
// loopback, link-local, private, multicast and the metadata services of clouds.
//
// A [Guard] checks the address that a connection is about to be made to, after
// name resolution and for each redirect, so that neither a notation of an
// address nor a change in the DNS passes it. Start with [Guard.Transport], or
// with [Guard.Dial] for a proxy. [ParseURL] checks and normalises an address
// before the request.
package safenet

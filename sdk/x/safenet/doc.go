// Package safenet keeps requests from reaching addresses that are not public:
// loopback, link-local, private, multicast and the metadata services of clouds.
//
// A [Guard] checks the address of a connection before it is made, after name resolution
// and for each redirect, so that neither the notation of an address nor a change in the
// DNS can bypass it. Start with [Guard.Transport], or with [Guard.Dial] for a proxy.
// [ParseURL] checks and normalises an address before the request.
package safenet

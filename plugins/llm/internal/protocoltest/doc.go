// Package protocoltest simulates model servers that speak a vendor's protocol, for tests.
// A server checks each request by the rules that the vendor documents, and refuses what
// the vendor would refuse, such as reasoning that was changed or is missing.
//
// Start with [Start].
package protocoltest

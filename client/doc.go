// Package client talks to a server that runs workflows, `tea serve`.
//
// Start with [New], then [Client.Start], [Client.Wait] and [Client.Resume]. Errors of
// the server are of type [*Error]. A client is safe for concurrent use.
package client

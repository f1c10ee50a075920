// Package client is a client of `tea serve`, a server that runs workflows.
//
// Start with [New], then [Client.Start], [Client.Wait] and [Client.Resume]. Errors of
// the server are of type [*Error]. A client is safe for concurrent use.
package client

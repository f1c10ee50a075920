// Package server runs the workflows of a directory by schedule, webhook, file,
// message or request, and serves the HTTP API.
//
// Start with [Command] and newServer. catalog holds the workflows, which are reloaded
// when their files change; ledger is the state on disk; queue decides which run is
// next, and run executes it; hub passes its events to clients; api and its neighbors
// answer requests.
package server

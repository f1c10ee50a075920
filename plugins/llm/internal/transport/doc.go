// Package transport sends requests to a model server: it retries transient
// failures, enforces limits of time and size, and reports failures as
// *tea.Error without the secrets that a request carried.
//
// Start with [Server.Post].
package transport

// Package transport brings a request to a model server: it tries again what
// may pass, keeps the time limits, and words failures as *tea.Error without
// the secrets that the request carried.
//
// Start with [Client.Post].
package transport

// Package session keeps the sessions of users: documents of kind "session", active or archived, never removed. The
// files of a session (package file) are below its prefix; they are moved in the transaction that archives or restores
// the session.
//
// Start with [New]. session.go has the session and its document, change.go its
// changes, expiry.go its expiry, list.go the queries.
package session

// Package session keeps the sessions of users: documents of kind "session",
// active or archived, never removed. The files of a session (package file) lie
// below its prefix; when it is archived or restored, they move in the transaction
// that changes the session, so that both change atomically.
//
// Start with [New]. session.go has the session and its document, change.go its
// changes, expiry.go its expiry, list.go the queries.
package session

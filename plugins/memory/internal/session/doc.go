// Package session keeps the sessions of users: documents of kind "session",
// active or archived, never removed. The files of a session (package file) lie
// below its prefix; when it is archived or restored, they move in the
// transaction that changes the session, so that a crash leaves both as they
// were or both moved.
//
// Start with [New]. session.go has the session and its document, change.go
// what changes it, expiry.go what time does to it, list.go the queries.
package session

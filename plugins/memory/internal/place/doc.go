// Package place checks the paths of files in workflows and resolves them to a
// file with or without a session. Start with [Of].
package place

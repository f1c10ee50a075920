// Package policy decides which plugins can run: those that are unchanged since
// their installation, that every lock allows, and that a required key has
// signed. Start with [Policy.Verify].
package policy

// Package local is the provider that fetches pages itself. Start with [Open];
// a [Reader] reads pages and sites.
package local

// Package builtin collects the host's own bundles that need nothing but
// settings: json, csv, data, http, file and time, each in a package of its
// own below this one. Start with [Bundles].
package builtin

// Package builtin collects the host's own bundles that need only settings:
// json, csv, data, http, file and time, each in a package below this one. Start
// with [Bundles].
package builtin

// Package jsonactions is the host's bundle json: json.parse, json.transform
// and json.stringify. Start with [Bundle].
package jsonactions

// Package csvactions is the host's bundle csv: csv.parse and csv.stringify
// according to RFC 4180. Start with [Bundle]; [Parse] parses text without the
// bundle.
//
// Parsed fields are strings, as "007" is not always a number. The package does
// not use encoding/csv, which changes line breaks inside quotes, does not
// support CR line ends and multi-byte positions, and quotes leading spaces.
package csvactions

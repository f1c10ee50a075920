// Package csvactions is the host's bundle csv: csv.parse and csv.stringify
// after RFC 4180. Start with [Bundle]; [Parse] is the reader alone.
//
// Fields are strings on the way in: whether "007" is a number is not for a
// reader to decide. Line breaks inside of quotes are kept as they are.
package csvactions

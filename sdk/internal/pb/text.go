package pb

import "strings"

// Text makes s fit a protobuf string, which must be UTF-8: a token may end in
// half a character, an error may quote any bytes.
func Text(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

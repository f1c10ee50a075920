//go:build !wasm

package file

import "net/http"

// detectType returns the media type of a content without a known extension.
func detectType(data []byte) string { return http.DetectContentType(data) }

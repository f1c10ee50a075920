package file

import "unicode/utf8"

// detectType returns the media type of a content without a known extension. It detects texts only: net/http, which also
// detects images, would add two megabytes.
func detectType(data []byte) string {
	head := data[:min(len(data), 512)]
	for i := range min(len(head), utf8.UTFMax) { // the data can end within a character
		if utf8.Valid(head[:len(head)-i]) {
			return "text/plain; charset=utf-8"
		}
	}
	return "application/octet-stream"
}

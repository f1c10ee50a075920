package local

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

const (
	// acceptEncoding lists the supported content encodings.
	acceptEncoding = "gzip, br, zstd"
	// maxEncodings bounds how often a body is encoded.
	maxEncodings = 3
	// maxZstdWindow bounds the decoder's memory; RFC 9659 limits servers to this
	// size.
	maxZstdWindow = 8 << 20
)

var (
	errTooLong  = errors.New("the response is too long")
	errEncoding = errors.New("the content encoding is not supported")
)

// readBody reads and decodes a body. If the encoded or the decoded body exceeds limit,
// the error is errTooLong.
func readBody(resp *http.Response, limit int64) ([]byte, error) {
	var encodings []string
	for _, name := range strings.Split(strings.Join(resp.Header.Values("Content-Encoding"), ","), ",") {
		if name = strings.ToLower(strings.TrimSpace(name)); name != "" && name != "identity" {
			encodings = append(encodings, name)
		}
	}
	if len(encodings) > maxEncodings {
		return nil, errEncoding
	}
	var body io.Reader = &limited{r: resp.Body, left: limit}
	for i := len(encodings) - 1; i >= 0; i-- {
		decoder, err := newDecoder(encodings[i], body)
		if err == io.EOF {
			return nil, nil // an empty body has no header
		}
		if err != nil {
			return nil, err
		}
		defer decoder.Close()
		body = &limited{r: decoder, left: limit}
	}
	return io.ReadAll(body)
}

func newDecoder(encoding string, r io.Reader) (io.ReadCloser, error) {
	switch encoding {
	case "gzip", "x-gzip":
		return gzip.NewReader(r)
	case "br":
		return io.NopCloser(brotli.NewReader(r)), nil
	case "zstd":
		d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxZstdWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	case "deflate":
		return newInflater(r)
	}
	return nil, errEncoding
}

// newInflater reads deflate as servers send it: with or without the header of zlib.
func newInflater(r io.Reader) (io.ReadCloser, error) {
	head := make([]byte, 2)
	n, err := io.ReadFull(r, head)
	if err == io.EOF {
		return nil, err
	}
	r = io.MultiReader(bytes.NewReader(head[:n]), r)
	if n == 2 && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return zlib.NewReader(r)
	}
	return flate.NewReader(r), nil
}

// limited is like io.LimitedReader, but fails at its limit.
type limited struct {
	r    io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.r.Read(p)
	if int64(n) > l.left {
		n, l.left = int(l.left), 0
		return n, errTooLong
	}
	l.left -= int64(n)
	return n, err
}

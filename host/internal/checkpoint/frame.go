package checkpoint

import (
	"encoding/binary"
	"hash/crc32"
	"sync"
)

// FormatVersion is the format version of files that this package writes.
const FormatVersion = 1

// The sizes of the format's parts.
const (
	preambleSize    = 16 // magic 8, version 4, checksum 4
	frameHeaderSize = 20 // length 4, payload checksum 4, durable 8, header checksum 4
	frameFooterSize = 4  // complement of the length 4
	frameOverhead   = frameHeaderSize + frameFooterSize
)

// magic contains a byte that is not text, and line ends that a transfer in text
// mode changes.
const magic = "\x89TEA\r\n\x1a\n"

// castagnoli is built on first use: a run without a checkpoint does not need it.
var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli()) }

// preamble returns the bytes before the first frame. Its layout is the same in
// every version, so that an older program can report a newer version.
func preamble(version int) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(magic), uint32(version))
	return binary.LittleEndian.AppendUint32(b, checksum(b))
}

type frame struct {
	payload []byte
	size    int // of the whole frame
}

// frameState is the result of parsing a frame.
type frameState int

const (
	frameWhole      frameState = iota
	frameShort                 // the file ends inside the frame
	frameBadHeader             // the header's checksum is wrong
	frameBadPayload            // the payload's checksum or the footer is wrong
)

// appendFrame adds a frame with payload. The frame is incomplete until
// sealFrames is called.
//
// The footer allows a reader to find the last frame from the end of the file. It
// is the complement of the length so that no complete file ends in zeros.
func appendFrame(b []byte, payload func([]byte) []byte) []byte {
	start := len(b)
	b = append(b, make([]byte, frameHeaderSize)...)
	b = payload(b)
	body := b[start+frameHeaderSize:]
	binary.LittleEndian.PutUint32(b[start:], uint32(len(body)))
	binary.LittleEndian.PutUint32(b[start+4:], checksum(body))
	return binary.LittleEndian.AppendUint32(b, ^uint32(len(body)))
}

// sealFrames completes the headers of frames that are about to be written to a
// file whose first durable bytes are known to be on disk. It can be called again
// with another value.
func sealFrames(b []byte, durable int64) {
	for len(b) > 0 {
		size := int(binary.LittleEndian.Uint32(b)) + frameOverhead
		binary.LittleEndian.PutUint64(b[8:], uint64(durable))
		binary.LittleEndian.PutUint32(b[16:], checksum(b[:16]))
		b = b[size:]
	}
}

// parseFrame parses the frame at the beginning of b, which extends to the end of
// the file. With frameBadPayload the frame's size is valid.
func parseFrame(b []byte) (frame, frameState) {
	if len(b) < frameHeaderSize {
		return frame{}, frameShort
	}
	if checksum(b[:16]) != binary.LittleEndian.Uint32(b[16:]) {
		return frame{}, frameBadHeader
	}
	length := binary.LittleEndian.Uint32(b)
	if uint64(length)+frameOverhead > uint64(len(b)) {
		return frame{}, frameShort
	}
	f := frame{
		payload: b[frameHeaderSize : frameHeaderSize+int(length)],
		size:    int(length) + frameOverhead,
	}
	if checksum(f.payload) != binary.LittleEndian.Uint32(b[4:]) ||
		binary.LittleEndian.Uint32(b[f.size-frameFooterSize:]) != ^length {
		return f, frameBadPayload
	}
	return f, frameWhole
}

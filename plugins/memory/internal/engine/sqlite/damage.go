package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
)

// SQLite silently ignores a log from the first frame with a wrong checksum, since the
// last write before a kill looks the same, and a log with a damaged header.

// sector is the smallest number of zeros that counts as damage; fewer may be the end of
// a page.
const sector = 512

// findDamage returns the damage of a log that a kill does not leave, or nil.
func findDamage(path string) (*engine.Damage, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil || len(data) < sector {
		return nil, err
	}
	valid, frame := validEnd(data)
	switch {
	case valid == 0:
		return &engine.Damage{Correct: correctHeader(data)}, nil
	case endsInZeros(data, valid, frame) || hasCommit(data, valid+frame, frame):
		return &engine.Damage{Position: int64(valid)}, nil
	}
	return nil, nil
}

// endsInZeros reports whether the end of a log, from within its first damaged frame, was
// replaced by zeros.
func endsInZeros(data []byte, valid, frame int) bool {
	if valid == len(data) || !isZero(data[len(data)-sector:]) {
		return false
	}
	zeros := len(bytes.TrimRight(data, "\x00"))
	if zeros > valid+frame || zeros > valid && len(data) < valid+frame {
		return false // from before the log restarted, or an incomplete frame
	}
	return zeros < valid+frameHeader || hasSalt(data, valid) // else a frame from before the log restarted
}

// hasCommit reports whether one of the frames from a position on ends a transaction of
// this log. The frames from before the log restarted have another salt.
func hasCommit(data []byte, from, frame int) bool {
	for ; from+frame <= len(data); from += frame {
		if hasSalt(data, from) && binary.BigEndian.Uint32(data[from+4:]) != 0 {
			return true
		}
	}
	return false
}

// hasSalt reports whether a frame has the salt of the log.
func hasSalt(data []byte, frame int) bool {
	return bytes.Equal(data[frame+8:frame+16], data[16:24])
}

// correctHeader returns the header of a log in which one byte is damaged, nil if more are.
func correctHeader(data []byte) []byte {
	header := bytes.Clone(data[:logHeader])
	for i, damaged := range header {
		for b := range 256 {
			header[i] = byte(b)
			if order := byteOrder(header); order != nil && checksum(order, [2]uint32{}, header[:24]) == sums(header[24:]) && bytes.Equal(header[16:24], data[logHeader+8:logHeader+16]) {
				return header
			}
		}
		header[i] = damaged
	}
	return nil
}

// byteOrder returns the byte order of the checksums; nil if the header is damaged.
func byteOrder(header []byte) binary.ByteOrder {
	switch binary.BigEndian.Uint32(header) {
	case 0x377f0682:
		return binary.LittleEndian
	case 0x377f0683:
		return binary.BigEndian
	}
	return nil
}

// validEnd returns the end of the frames that SQLite reads, and the size of one frame.
func validEnd(data []byte) (end, frame int) {
	if len(data) < logHeader {
		return 0, len(data)
	}
	order := byteOrder(data)
	if order == nil {
		return 0, len(data)
	}
	sum := checksum(order, [2]uint32{}, data[:24])
	if sum != sums(data[24:]) {
		return 0, len(data)
	}
	frame = frameHeader + int(binary.BigEndian.Uint32(data[8:]))
	for end = logHeader; end+frame <= len(data); end += frame {
		header, page := data[end:end+frameHeader], data[end+frameHeader:end+frame]
		sum = checksum(order, checksum(order, sum, header[:8]), page)
		if !bytes.Equal(header[8:16], data[16:24]) || sum != sums(header[16:]) {
			break
		}
	}
	return end, frame
}

func sums(data []byte) [2]uint32 {
	return [2]uint32{binary.BigEndian.Uint32(data), binary.BigEndian.Uint32(data[4:])}
}

// checksum computes the checksum of https://sqlite.org/fileformat2.html#walformat.
func checksum(order binary.ByteOrder, sum [2]uint32, data []byte) [2]uint32 {
	for i := 0; i+8 <= len(data); i += 8 {
		sum[0] += order.Uint32(data[i:]) + sum[1]
		sum[1] += order.Uint32(data[i+4:]) + sum[0]
	}
	return sum
}

// errTruncated is the error for a database whose last page is incomplete.
var errTruncated = errors.New("the end of the file is missing")

// checkPageSize returns errTruncated for a closed database that ends within a page. SQLite ignores such an end, and
// with it the rows of the page. If there is a log, an interrupted checkpoint may have left the file so, which the log
// completes.
func checkPageSize(path string) error {
	if log, err := os.Stat(path + "-wal"); err == nil && log.Size() > 0 {
		return nil
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var header [18]byte
	if n, err := f.ReadAt(header[:], 0); n < len(header) || err != nil && n == 0 {
		return nil // SQLite reports it
	}
	page := int64(binary.BigEndian.Uint16(header[16:]))
	if page == 1 {
		page = 1 << 16
	}
	if page >= sector && info.Size()%page != 0 {
		return errTruncated
	}
	return nil
}

func isZero(data []byte) bool { return len(bytes.TrimRight(data, "\x00")) == 0 }

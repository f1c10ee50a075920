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
// last write before a kill looks the same.

// sector is the smallest number of zeros that counts as damage; fewer may be the end of
// a page.
const sector = 512

// cutZeros truncates a log whose end was replaced by zeros, before its first
// damaged frame, and keeps the whole log in another file. It returns "" for any
// other log.
func cutZeros(path string) (repaired string, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil || len(data) < sector || !isZero(data[len(data)-sector:]) {
		return "", err
	}
	valid, frame := validEnd(data)
	zeros := len(bytes.TrimRight(data, "\x00"))
	if valid == len(data) || zeros > valid+frame || zeros > valid && len(data) < valid+frame {
		return "", nil // intact, from before the log restarted, or an incomplete frame
	}
	if zeros >= valid+frameHeader && valid > 0 && !bytes.Equal(data[valid+8:valid+16], data[16:24]) {
		return "", nil // a frame from before the log restarted
	}
	return engine.CutLog(path, int64(valid))
}

// validEnd returns the end of the frames that SQLite reads, and the size of one frame.
func validEnd(data []byte) (end, frame int) {
	if len(data) < logHeader {
		return 0, len(data)
	}
	var order binary.ByteOrder = binary.LittleEndian
	switch binary.BigEndian.Uint32(data) {
	case 0x377f0682:
	case 0x377f0683:
		order = binary.BigEndian
	default:
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

// errCut is the error for a database whose last page is incomplete.
var errCut = errors.New("the end of the file is missing")

// wholePages returns errCut for a closed database that ends within a page. SQLite ignores
// such an end, and with it the rows of the page. While there is a log, a checkpoint that
// was interrupted can have left it, which the log completes.
func wholePages(path string) error {
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
		return errCut
	}
	return nil
}

func isZero(data []byte) bool { return len(bytes.TrimRight(data, "\x00")) == 0 }

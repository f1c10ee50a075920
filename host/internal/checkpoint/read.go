package checkpoint

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// Contents are the contents of a journal. The records' bodies share one buffer,
// which stays in memory as long as one of them is in use.
type Contents struct {
	Header  Header
	Records []Record
	// Notes tell the user what was repaired or left out.
	Notes []string
	// Size is the size of the file in bytes, without a torn tail.
	Size int64

	// torn is the length of the torn tail in bytes.
	torn int64
}

// Read returns the contents of the journal at path without locking it: if the
// run is in progress, they are the records written so far. A torn tail is left
// out with a note. Read returns a [*CorruptError] for a damaged file, a
// [*VersionError] for an unsupported format, and the file's errors.
func Read(path string) (*Contents, error) {
	f, err := openJournalFile(path, os.O_RDONLY)
	if err != nil {
		return nil, fmt.Errorf("read checkpoint: %w", err)
	}
	defer f.Close()
	c, err := readFrom(f, path)
	if err != nil {
		return nil, err
	}
	if c.torn > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("torn tail of %d bytes ignored", c.torn))
	}
	return c, nil
}

// checkStart returns a [*NoStartError] if the journal lacks the run's input.
func (c *Contents) checkStart(path string) error {
	if len(c.Records) == 0 || c.Records[0].Kind != KindStart {
		return &NoStartError{Path: path}
	}
	return nil
}

// readFrom reads all of f from its beginning.
func readFrom(f *os.File, path string) (*Contents, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read checkpoint: %w", err)
	}
	// The current size bounds the reading of a file that grows meanwhile.
	buf := make([]byte, info.Size())
	n, err := io.ReadFull(f, buf)
	if err != nil && n == 0 && len(buf) > 0 {
		return nil, fmt.Errorf("read checkpoint: %w", err)
	}
	return decode(buf[:n], path)
}

// decode decodes a file's bytes and retains them. path is for messages.
func decode(buf []byte, path string) (*Contents, error) {
	version, err := parsePreamble(buf, path)
	if err != nil {
		return nil, err
	}
	switch version {
	case 1:
		return decodeV1(buf, path)
	default:
		return nil, &VersionError{Path: path, Version: version, Supported: FormatVersion}
	}
}

// parsePreamble returns the format version of the file that begins with buf.
func parsePreamble(buf []byte, path string) (int, error) {
	switch {
	case len(buf) < preambleSize:
		return 0, &CorruptError{Path: path, Offset: int64(len(buf)), Reason: "it ends before its header"}
	case string(buf[:len(magic)]) != magic:
		return 0, &CorruptError{Path: path, Reason: "it is not a checkpoint of tea"}
	case checksum(buf[:12]) != binary.LittleEndian.Uint32(buf[12:]):
		return 0, &CorruptError{Path: path, Offset: int64(len(magic)), Reason: "the checksum of the format version is wrong"}
	}
	return int(binary.LittleEndian.Uint32(buf[8:])), nil
}

// decodeV1 reads the frames of format version 1.
func decodeV1(buf []byte, path string) (*Contents, error) {
	c := &Contents{}
	off := preambleSize
	for first := true; first || off < len(buf); first = false {
		f, state := parseFrame(buf[off:])
		if state != frameWhole {
			if !tornAt(buf, off, f, state) {
				return nil, &CorruptError{Path: path, Offset: int64(off), Reason: "the checksum of a record is wrong"}
			}
			if first {
				return nil, &CorruptError{Path: path, Offset: int64(off), Reason: "it ends before its header"}
			}
			c.torn = int64(len(buf) - off)
			break
		}
		if err := c.take(f.payload, first); err != nil {
			return nil, &CorruptError{Path: path, Offset: int64(off), Reason: err.Error()}
		}
		off += f.size
	}
	c.Size = int64(off)
	return c, nil
}

// take adds the header or the next record.
func (c *Contents) take(payload []byte, header bool) error {
	if header {
		h, err := parseHeader(payload)
		c.Header = h
		return err
	}
	r, err := parseRecord(payload)
	if err != nil {
		return err
	}
	if want := uint64(len(c.Records)) + 1; r.Seq != want {
		return fmt.Errorf("record %d is where record %d should be", r.Seq, want)
	}
	c.Records = append(c.Records, r)
	return nil
}

func parseHeader(payload []byte) (Header, error) {
	var h Header
	if err := json.Unmarshal(payload, &h); err != nil {
		return h, fmt.Errorf("the header is not readable: %w", err)
	}
	return h, nil
}

package checkpoint

import "encoding/binary"

const (
	// sectorSize is the smallest unit that storage writes as a whole.
	sectorSize = 512
	// minZeroRun is the number of consecutive zero bytes that indicate a lost
	// write. Fewer can be a few damaged bytes.
	minZeroRun = 8
)

// tornAt reports whether the damaged frame at buf[off:] is the result of an
// interrupted write, so that cutting it off loses no acknowledged data. f and
// state are the result of parseFrame.
//
// An interrupted write leaves a file that ends inside the frame, or whose lost
// parts read as zeros. Neither is possible if a later frame says that this one
// was on disk before: then it was complete once and was damaged later.
func tornAt(buf []byte, off int, f frame, state frameState) bool {
	end := off + f.size
	switch state {
	case frameShort:
		return true
	case frameBadHeader:
		end = off + frameHeaderSize
	}
	return (endsInZeros(buf, end) || hasLostSector(buf, off, end)) && !knownDurable(buf, off)
}

// endsInZeros reports whether the file is zero from before end to its end.
// Complete frames never are, because of their footers.
func endsInZeros(buf []byte, end int) bool {
	from := min(end-1, len(buf)-minZeroRun)
	return from >= 0 && allZero(buf[from:])
}

// hasLostSector reports whether a sector that overlaps buf[from:to] is all zeros
// after from. A complete frame has none: it begins with its length and a
// checksum, ends in a footer, and JSON has no zero bytes.
func hasLostSector(buf []byte, from, to int) bool {
	for sector := from - from%sectorSize; sector < to; sector += sectorSize {
		part := buf[max(sector, from):min(sector+sectorSize, len(buf))]
		if len(part) >= minZeroRun && allZero(part) {
			return true
		}
	}
	return false
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// knownDurable reports whether a complete frame after off was written when
// buf[:off+1] was already on disk.
func knownDurable(buf []byte, off int) bool {
	for at := off + 1; at+frameOverhead <= len(buf); at++ {
		durable := binary.LittleEndian.Uint64(buf[at+8:])
		if durable <= uint64(off) || durable > uint64(at) {
			continue
		}
		if _, state := parseFrame(buf[at:]); state == frameWhole {
			return true
		}
	}
	return false
}

//go:build !lite && cgo && ((linux && (amd64 || arm64)) || (darwin && (amd64 || arm64)) || (windows && amd64))

package duckdb

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
)

// A log begins with a record of 8 bytes, which has the version of the format and no
// checksum. Each other record begins with its size and its checksum.
//
// DuckDB refuses a record with a wrong checksum, and cutLog truncates the log before it.
// But it ignores a log that begins with other bytes, and the end of a log from a record
// whose size is larger than the rest, since a kill can leave an incomplete record.
// repairLogs recognizes what a kill does not leave.
const (
	firstRecord = "\x64\x00\x62\x65\x00\x02\xff\xff"
	versionAt   = 5 // in the first record
	// recordHeader is the size of a record's size and checksum.
	recordHeader = 16
	// commitRecord ends each transaction.
	commitRecord = "\x05\x00\x00\x00\x00\x00\x00\x00\xe7\xfe\x7d\x72\x2f\xed\x3d\x5e\x64\x00\x64\xff\xff"
	// recordEnd ends each record.
	recordEnd = "\xff\xff"
)

// refusedLog is DuckDB's error for a record with a wrong checksum. The position is
// after the size and the checksum of the record.
var refusedLog = regexp.MustCompile(`WAL file "(.*)": Corrupt WAL file: entry at byte position (\d+) `)

// cutLog truncates a log before the record that DuckDB refused, and keeps the
// whole log in another file. It returns "" for any other error.
func cutLog(path string, refused error) (repaired string, err error) {
	found := refusedLog.FindStringSubmatch(refused.Error())
	if found == nil {
		return "", nil
	}
	position, err := strconv.ParseInt(found[2], 10, 64)
	if err != nil {
		return "", err
	}
	for _, log := range logs(path) {
		if filepath.Base(log) == filepath.Base(found[1]) {
			return engine.CutLog(log, max(position-recordHeader, 0))
		}
	}
	return "", nil
}

// repairLogs repairs damage that DuckDB would not report.
func repairLogs(path string) (repaired []string, err error) {
	for _, log := range logs(path) {
		one, err := engine.RepairLog(log, findDamage)
		if repaired = append(repaired, one...); err != nil {
			return repaired, err
		}
	}
	return repaired, nil
}

// findDamage returns the first damage that DuckDB would not report, or nil.
func findDamage(log string) (*engine.Damage, error) {
	file, err := os.Open(log)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	from, size := bufio.NewReader(file), info.Size()
	first := make([]byte, min(size, int64(len(firstRecord))))
	if _, err := io.ReadFull(from, first); err != nil || len(first) == 0 {
		return nil, err
	}
	if first[0] == 0 {
		return &engine.Damage{}, nil
	}
	var record []byte
	for at := int64(len(firstRecord)); at+recordHeader < size; {
		var header [recordHeader]byte
		if _, err := io.ReadFull(from, header[:]); err != nil {
			return nil, err
		}
		length, sum := binary.LittleEndian.Uint64(header[:]), binary.LittleEndian.Uint64(header[8:])
		tooLong := length > uint64(size-at-recordHeader)
		if tooLong {
			length = 0
		}
		record = slices.Grow(record[:0], int(length))[:length]
		if _, err := io.ReadFull(from, record); err != nil {
			return nil, err
		}
		if !tooLong && checksum(record) == sum {
			if string(first) != firstRecord {
				return &engine.Damage{Correct: []byte(firstRecord)}, nil
			}
			at += recordHeader + int64(length)
			continue
		}
		rest, err := io.ReadAll(from)
		if err != nil {
			return nil, err
		}
		rest = append(record, rest...)
		committed := bytes.Contains(rest, []byte(commitRecord))
		switch length := recordLength(rest, sum); {
		case string(first) != firstRecord:
			if committed && !strings.HasPrefix(string(first), firstRecord[:versionAt]) { // else it is another version
				return &engine.Damage{}, nil
			}
		case length > 0:
			return &engine.Damage{Position: at, Correct: binary.LittleEndian.AppendUint64(nil, uint64(length))}, nil
		case tooLong && committed:
			return &engine.Damage{Position: at}, nil
		}
		return nil, nil // DuckDB reports the damage, or the record is incomplete
	}
	return nil, nil
}

// recordLength returns the length of the record at the beginning of data that has the
// checksum; 0 if there is none.
func recordLength(data []byte, sum uint64) int {
	words := uint64(emptySum)
	for at := 0; at < len(data); at += wordSize {
		word := data[at:min(at+wordSize, len(data))]
		for n := range word {
			if end := at + n + 1; bytes.HasSuffix(data[:end], []byte(recordEnd)) && words^wordSum(word[:n+1]) == sum {
				return end
			}
		}
		words ^= wordSum(word)
	}
	return 0
}

const (
	wordSize = 8
	emptySum = 5381
)

// checksum returns DuckDB's checksum of a record.
func checksum(record []byte) uint64 {
	sum := uint64(emptySum)
	for word := range slices.Chunk(record, wordSize) {
		sum ^= wordSum(word)
	}
	return sum
}

// wordSum returns the part of a checksum for 8 bytes, or for the fewer bytes at the end.
func wordSum(word []byte) uint64 {
	if len(word) == wordSize {
		return binary.LittleEndian.Uint64(word) * 0xbf58476d1ce4e5b9
	}
	const factor = 0xc6a4a7935bd1e995
	h := 0xe17a1465 ^ uint64(len(word))*factor
	for i, b := range word {
		h ^= uint64(b) << (8 * i)
	}
	h *= factor
	h ^= h >> 47
	h *= factor
	return h ^ h>>47
}

//go:build !lite && cgo && ((linux && (amd64 || arm64)) || (darwin && (amd64 || arm64)) || (windows && amd64))

package duckdb

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
)

// DuckDB itself truncates a log whose end is missing. It refuses a log that ends
// with other bytes, as after a power failure that wrote the size of a file but
// not its data.

// refusedLog is DuckDB's error for a record with a wrong checksum. The position is
// after the size and the checksum of the record.
var refusedLog = regexp.MustCompile(`WAL file "(.*)": Corrupt WAL file: entry at byte position (\d+) `)

const recordHeader = 16

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

// cutZeros does the same for a log that begins with zeros, which DuckDB treats as
// empty.
func cutZeros(path string) (repaired string, err error) {
	for _, log := range logs(path) {
		zeros, err := beginsWithZeros(log)
		if err != nil {
			return "", err
		}
		if zeros {
			return engine.CutLog(log, 0)
		}
	}
	return "", nil
}

func beginsWithZeros(log string) (bool, error) {
	file, err := os.Open(log)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	first := []byte{1}
	_, err = file.Read(first)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return first[0] == 0, err
}

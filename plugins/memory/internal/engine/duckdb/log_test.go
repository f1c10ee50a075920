//go:build !lite && cgo && ((linux && (amd64 || arm64)) || (darwin && (amd64 || arm64)) || (windows && amd64))

package duckdb

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// killedWithLog returns a folder that a kill left, its log, and the ends of the log
// after each of its records 0, 1, ...
func killedWithLog(t *testing.T, records int) (dir string, log []byte, ends []int) {
	t.Helper()
	e, _ := opens(t, t.TempDir(), "")
	closes(t, e)
	dir = t.TempDir()
	e, _ = opens(t, dir, "")
	adds(t, e, "a")
	closes(t, e)
	e, _ = opens(t, dir, "")
	for i := range records {
		adds(t, e, fmt.Sprint(i))
		whole, err := os.ReadFile(filepath.Join(dir, "memory.duckdb.wal"))
		if err != nil {
			t.Fatal(err)
		}
		log, ends = whole, append(ends, len(whole))
	}
	return killedCopy(t, dir), log, ends
}

// withLog opens a copy of a folder with another log. It returns the records found in the
// database, the copies that were kept of the log, and the log messages.
func withLog(t *testing.T, dir string, log []byte, records int) (found string, kept []string, said string) {
	t.Helper()
	left := killedCopy(t, dir)
	if err := os.WriteFile(filepath.Join(left, "memory.duckdb.wal"), log, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := engine.Open(t.Context(), engine.Options{Dir: left, Driver: database{}, Warmup: true, ReadOnly: "a test"})
	refused := err != nil
	if !refused {
		closes(t, reader)
	}
	e, text := opens(t, left, "")
	closes(t, e) // opened and closed without use
	e, _ = opens(t, left, "")
	defer closes(t, e)
	for i := range records {
		if len(byID(t, e, fmt.Sprint(i))) == 1 {
			found += fmt.Sprint(i)
		}
	}
	kept, err = filepath.Glob(filepath.Join(left, "memory.duckdb.wal.damaged-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range kept {
		if whole, err := os.ReadFile(name); err != nil || !bytes.Equal(whole, log) {
			t.Errorf("%s is not the damaged log: %v", name, err)
		}
	}
	if told := strings.Contains(text.String(), "a copy of the damaged log is in"); told != (len(kept) == 1) || refused != told {
		t.Errorf("kept %v, refused to read it: %t, said %s", kept, refused, text)
	}
	return found, kept, text.String()
}

// recordsOf returns the positions and sizes of the records in a log.
func recordsOf(log []byte) (all [][2]int) {
	for at := len(firstRecord); at < len(log); {
		size := int(binary.LittleEndian.Uint64(log[at:]))
		all = append(all, [2]int{at, size})
		at += recordHeader + size
	}
	return all
}

func TestFlippedByteInTheLogLosesNothingSilently(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it opens hundreds of databases")
	const records = 2
	dir, log, ends := killedWithLog(t, records)
	if first := string(log[:len(firstRecord)]); first != firstRecord {
		t.Fatalf("the log begins with %x", first)
	}
	type flip struct {
		at, record int // record is where the record begins
		corrected  bool
	}
	var flips []flip
	for at := range len(firstRecord) {
		flips = append(flips, flip{at, 0, true})
	}
	for _, r := range recordsOf(log) {
		for i := range 8 {
			flips = append(flips, flip{r[0] + i, r[0], true}, flip{r[0] + 8 + i, r[0], false})
		}
		flips = append(flips, flip{r[0] + recordHeader, r[0], false}, flip{r[0] + recordHeader + r[1] - 1, r[0], false})
	}
	for _, f := range flips {
		t.Run(fmt.Sprint(f.at), func(t *testing.T) {
			t.Parallel()
			mask := []byte{0x01, 0x80, 0xff}[f.at%3]
			damaged := bytes.Clone(log)
			damaged[f.at] ^= mask
			want := ""
			for i, end := range ends {
				if f.corrected || end <= f.record {
					want += fmt.Sprint(i)
				}
			}
			found, kept, said := withLog(t, dir, damaged, records)
			if found != want || len(kept) != 1 {
				t.Errorf("byte %d changed by %x: found %q, want %q; kept %v, said %s", f.at, mask, found, want, kept, said)
			}
		})
	}
}

func TestBytesBehindAnOverwrittenRecordAreKept(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it opens many databases")
	const records = 4
	dir, log, ends := killedWithLog(t, records)
	for at := 0; at < ends[2]; at += 13 {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			damaged := bytes.Clone(log)
			copy(damaged[at:min(at+40, len(log))], bytes.Repeat([]byte{0xa5}, 40))
			want := ""
			for i, end := range ends {
				if end <= at {
					want += fmt.Sprint(i)
				}
			}
			found, kept, said := withLog(t, dir, damaged, records)
			if found != want || len(kept) != 1 {
				t.Errorf("found %q, want %q; kept %v, said %s", found, want, kept, said)
			}
		})
	}
}

// The last write before a kill is no damage, wherever it ends.
func TestIncompleteEndOfTheLogIsNoDamage(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it opens many databases")
	const records = 2
	dir, log, ends := killedWithLog(t, records)
	for size := 1; size < len(log); size += 7 {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			want := ""
			for i, end := range ends {
				if end <= size {
					want += fmt.Sprint(i)
				}
			}
			if found, kept, said := withLog(t, dir, log[:size], records); found != want || len(kept) != 0 {
				t.Errorf("found %q, want %q; kept %v, said %s", found, want, kept, said)
			}
		})
	}
}

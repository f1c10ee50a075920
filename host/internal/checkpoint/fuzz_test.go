package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// frameUp makes a file whose frames are whole and hold the parts of data,
// which the fuzzer could not seal itself.
func frameUp(data []byte) []byte {
	var frames []byte
	for part := range bytes.SplitSeq(data, []byte("|")) {
		frames = appendFrame(frames, func(b []byte) []byte { return append(b, part...) })
	}
	sealFrames(frames, 0)
	return append(preamble(FormatVersion), frames...)
}

func FuzzRead(f *testing.F) {
	buf, ends := smallJournal(f)
	f.Add(buf, false)
	f.Add(buf[:ends[2]+9], false)
	f.Add(append(bytes.Clone(buf[:ends[1]]), make([]byte, 600)...), false)
	f.Add([]byte(`{"run_id":"r"}|`+string(appendRecord(nil, testRecords()[0]))), true)
	f.Add([]byte("{}|\x01\x00\x06finish\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), true)
	f.Fuzz(func(t *testing.T, data []byte, seal bool) {
		file := data
		if seal {
			file = frameUp(data)
		}
		c, err := decode(bytes.Clone(file), "x")
		if err != nil {
			var corrupt *CorruptError
			var version *VersionError
			if !errors.As(err, &corrupt) && !errors.As(err, &version) {
				t.Fatalf("an error of no known type: %v", err)
			}
			return
		}
		if c.Size+c.torn != int64(len(file)) {
			t.Fatalf("%d bytes and a torn tail of %d, the file has %d", c.Size, c.torn, len(file))
		}
		again, err := decode(bytes.Clone(file[:c.Size]), "x")
		if err != nil || again.torn != 0 {
			t.Fatalf("what recovery leaves: %v, torn %d", err, again.torn)
		}
		if diff := cmp.Diff(c.Records, again.Records); diff != "" {
			t.Fatalf("what recovery leaves (-before +after):\n%s", diff)
		}
	})
}

func TestHugeLengthTakesNoMemory(t *testing.T) { //nolint:paralleltest // it measures the memory of the whole process
	buf, _ := smallJournal(t)
	huge := make([]byte, frameHeaderSize)
	binary.LittleEndian.PutUint32(huge, 0xffff_ffff)
	binary.LittleEndian.PutUint32(huge[16:], checksum(huge[:16]))
	buf = append(append(buf, huge...), "rest"...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c, err := decode(buf, "x")
	runtime.ReadMemStats(&after)
	if err != nil || c.torn != int64(len(huge)+len("rest")) {
		t.Fatalf("%+v, %v; want a torn tail", c, err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
		t.Errorf("a frame that claims 4 GB took %d bytes of memory", used)
	}
}

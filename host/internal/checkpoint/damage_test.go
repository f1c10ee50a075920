package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/flow"
)

// smallJournal returns the bytes of a journal whose records were acknowledged
// one by one, and the offset behind the header and behind each record.
func smallJournal(t testing.TB) (buf []byte, ends []int) {
	t.Helper()
	s := testStore(t)
	j, err := s.Create(testHeader(), flow.DurabilitySync)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	header, err := os.Stat(createEmpty(t, testStore(t), testHeader()))
	if err != nil {
		t.Fatal(err)
	}
	ends = append(ends, int(header.Size()))
	for i, r := range damageRecords() {
		if err := j.Append(r); err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		ends = append(ends, int(j.Size()))
	}
	buf, err = os.ReadFile(j.Path())
	if err != nil {
		t.Fatal(err)
	}
	return buf, ends
}

// damageRecords has a record that is larger than a sector and whose length
// begins with a zero byte in the file.
func damageRecords() []Record {
	records := testRecords()
	big := Record{Seq: 5, Time: testTime, Kind: "finish", Path: "big"}
	big.Body = []byte(`"` + strings.Repeat("x", 512-len(appendRecord(nil, big))-2) + `"`)
	return append(records, big, Record{Seq: 6, Time: testTime, Kind: "finish", Path: "last", Body: []byte(`{}`)})
}

// openBytes opens a store's run that consists of buf.
func openBytes(t *testing.T, s *Store, buf []byte) (*Journal, *Contents, error) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.Dir(), "run.tea"), buf, 0o600); err != nil {
		t.Fatal(err)
	}
	return s.Open("run", flow.DurabilitySync)
}

// wholeRecords is how many records end at or before offset; -1 where not even
// the header does.
func wholeRecords(ends []int, offset int) int {
	n := -1
	for _, end := range ends {
		if end <= offset {
			n++
		}
	}
	return n
}

func TestTornTail(t *testing.T) {
	t.Parallel()
	buf, ends := smallJournal(t)
	// The cut itself is tried at every offset, the others at some.
	tails := map[string]struct{ zeros, step int }{"cut": {0, 1}, "zeros to a page": {4096, 13}, "a few zeros": {minZeroRun, 11}}
	for name, tail := range tails {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testStore(t)
			for cut := 0; cut <= len(buf); cut += tail.step {
				torn := append(bytes.Clone(buf[:cut]), make([]byte, tail.zeros)...)
				checkRecovery(t, s, torn, damageRecords(), wholeRecords(ends, cut))
				if t.Failed() {
					t.Fatalf("cut at %d of %d", cut, len(buf))
				}
			}
		})
	}
}

// checkRecovery opens a torn file, expects the first whole of all records, and
// goes on with it.
func checkRecovery(t *testing.T, s *Store, torn []byte, all []Record, whole int) {
	t.Helper()
	j, c, err := openBytes(t, s, torn)
	if whole < 1 {
		if !errors.As(err, new(*CorruptError)) && (whole < 0 || !errors.As(err, new(*NoStartError))) {
			t.Errorf("without a header or a start record: %v, want a CorruptError or a NoStartError", err)
		}
		wantUntouched(t, s, torn)
		return
	}
	if err != nil {
		t.Errorf("open: %v", err)
		return
	}
	defer j.Close()
	wantRecords(t, c.Records, append([]Record(nil), all[:whole]...))
	wantNotes := []string(nil)
	if rest := int64(len(torn)) - c.Size; rest > 0 {
		wantNotes = []string{fmt.Sprintf("torn tail of %d bytes cut off", rest)}
	}
	if diff := cmp.Diff(wantNotes, c.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if err := j.Append(Record{Kind: "after"}); err != nil {
		t.Errorf("append after recovery: %v", err)
	}
	if c = mustRead(t, j.Path()); len(c.Records) != whole+1 || c.Records[whole].Kind != "after" || len(c.Notes) > 0 {
		t.Errorf("after recovery and an append: %d records, notes %q; want %d", len(c.Records), c.Notes, whole+1)
	}
}

func wantUntouched(t *testing.T, s *Store, want []byte) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(s.Dir(), "run.tea"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("the refused file was changed")
	}
}

func TestFlippedByteIsRefused(t *testing.T) {
	t.Parallel()
	buf, _ := smallJournal(t)
	s := testStore(t)
	for at := range buf {
		for _, mask := range []byte{0x01, 0x20, 0x80, 0xff, buf[at]} {
			if mask == 0 {
				continue
			}
			flipped := bytes.Clone(buf)
			flipped[at] ^= mask
			var corrupt *CorruptError
			if _, err := decode(flipped, "x"); !errors.As(err, &corrupt) {
				t.Fatalf("byte %d changed by %#x: %v, want a CorruptError", at, mask, err)
			}
		}
		flipped := bytes.Clone(buf)
		flipped[at] ^= 0x10
		var corrupt *CorruptError
		if _, _, err := openBytes(t, s, flipped); !errors.As(err, &corrupt) {
			t.Fatalf("byte %d: open: %v, want a CorruptError", at, err)
		}
		wantUntouched(t, s, flipped)
	}
}

// The few bytes of a frame that reach into another sector may all be zeros
// after a flip; that does not make them a sector that was lost.
func TestFlippedByteIsRefusedAtEverySectorOffset(t *testing.T) {
	t.Parallel()
	for shift := range sectorSize {
		header := fmt.Sprintf(`{"run_id":%q}`, strings.Repeat("r", shift))
		frames := appendFrame(nil, func(b []byte) []byte { return append(b, header...) })
		last := preambleSize + len(frames)
		// A length whose first byte in the file is zero.
		record := Record{Seq: 1, Time: testTime, Kind: "finish"}
		record.Body = []byte(`"` + strings.Repeat("x", 256-len(appendRecord(nil, record))-2) + `"`)
		frames = appendFrame(frames, func(b []byte) []byte { return appendRecord(b, record) })
		sealFrames(frames, 0)
		buf := append(preamble(FormatVersion), frames...)
		for at := last; at < len(buf); at++ {
			if at == last+frameHeaderSize+1 {
				at = len(buf) - frameFooterSize - 1 // the middle of the body is like its ends
			}
			for _, mask := range []byte{0x01, 0xff} {
				flipped := bytes.Clone(buf)
				flipped[at] ^= mask
				var corrupt *CorruptError
				if _, err := decode(flipped, "x"); !errors.As(err, &corrupt) {
					t.Fatalf("frame at %d, byte %d changed by %#x: %v, want a CorruptError", last, at-last, mask, err)
				}
			}
		}
	}
}

// A page that never arrived in the middle of one large write, while the pages
// behind it did: nothing of that write was acknowledged.
func TestLostPageOfTheLastWriteIsTorn(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	j, err := s.Create(testHeader(), flow.DurabilitySync)
	if err != nil {
		t.Fatal(err)
	}
	first := testRecords()[:2]
	if err := j.Append(first...); err != nil {
		t.Fatal(err)
	}
	begin := int(j.Size())
	var batch []Record
	for range 40 {
		batch = append(batch, Record{Kind: "finish", Body: []byte(`"` + strings.Repeat("y", 900) + `"`)})
	}
	if err := j.Append(batch...); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	buf, err := os.ReadFile(j.Path())
	if err != nil {
		t.Fatal(err)
	}
	for page := (begin/4096 + 1) * 4096; page < len(buf); page += 4096 {
		lost := bytes.Clone(buf)
		clear(lost[page:min(page+4096, len(buf))])
		c, err := decode(lost, "x")
		if err != nil {
			t.Fatalf("page at %d lost: %v", page, err)
		}
		if n := len(c.Records); n < 2 || n >= 42 {
			t.Errorf("page at %d lost: %d records left", page, n)
		}
		wantRecords(t, c.Records[:2], first)
	}
}

// The same page lost after later writes had been acknowledged is damage: to
// cut the file there would lose them.
func TestLostPageOfAnEarlierWriteIsRefused(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	big := Record{Kind: "finish", Body: []byte(`"` + strings.Repeat("y", 9000) + `"`)}
	path := createRun(t, s, testHeader(), testRecords()[0], big)
	j, _, err := s.Open("run", flow.DurabilitySync)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Append(Record{Kind: "finish"}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	buf, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	clear(buf[4096:8192])
	var corrupt *CorruptError
	if _, _, err := openBytes(t, s, buf); !errors.As(err, &corrupt) {
		t.Fatalf("open: %v, want a CorruptError", err)
	}
	wantUntouched(t, s, buf)
}

func TestReadNotesATornTail(t *testing.T) {
	t.Parallel()
	buf, _ := smallJournal(t)
	path := filepath.Join(t.TempDir(), "run.tea")
	if err := os.WriteFile(path, buf[:len(buf)-3], 0o600); err != nil {
		t.Fatal(err)
	}
	c := mustRead(t, path)
	if len(c.Records) != len(damageRecords())-1 {
		t.Errorf("%d records", len(c.Records))
	}
	torn := len(buf) - 3 - int(c.Size)
	if diff := cmp.Diff([]string{fmt.Sprintf("torn tail of %d bytes ignored", torn)}, c.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if after, err := os.ReadFile(path); err != nil || len(after) != len(buf)-3 {
		t.Errorf("Read changed the file: %d bytes, %v", len(after), err)
	}
}

func TestNewerVersionIsRefused(t *testing.T) {
	t.Parallel()
	buf, _ := smallJournal(t)
	newer := append(preamble(FormatVersion+1), buf[preambleSize:]...)
	s := testStore(t)
	var version *VersionError
	if _, _, err := openBytes(t, s, newer); !errors.As(err, &version) {
		t.Fatalf("open: %v, want a VersionError", err)
	}
	if version.Version != FormatVersion+1 || version.Supported != FormatVersion {
		t.Errorf("got %+v", version)
	}
	wantUntouched(t, s, newer)
}

func TestOtherFilesAreRefused(t *testing.T) {
	t.Parallel()
	for name, buf := range map[string][]byte{
		"empty": {}, "text": []byte("name: not a checkpoint\nnodes: []\n"), "zeros": make([]byte, 4096),
		"header only in part": preamble(1),
	} {
		var corrupt *CorruptError
		if _, err := decode(buf, "x"); !errors.As(err, &corrupt) {
			t.Errorf("%s: %v, want a CorruptError", name, err)
		}
	}
}

func TestRecordOutOfOrderIsRefused(t *testing.T) {
	t.Parallel()
	buf, ends := smallJournal(t)
	gap := append(bytes.Clone(buf[:ends[1]]), buf[ends[2]:]...)
	var corrupt *CorruptError
	if _, err := decode(gap, "x"); !errors.As(err, &corrupt) || corrupt.Reason != "record 3 is where record 2 should be" {
		t.Errorf("got %v", err)
	}
}

package checkpoint

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/flow"
)

var update = flag.Bool("update", false, "write the files of the present format version in test/compat again")

// compatCase is a file of test/compat/v1 and what it has always held.
type compatCase struct {
	name    string
	header  Header
	records []Record
	tail    string // behind the records
	notes   []string
}

func compatV1() []compatCase {
	at := time.Date(2026, 11, 21, 2, 45, 12, 345678901, time.UTC)
	header := Header{
		Format: 1, RunID: "20261121-024512-7k3f9q", Workflow: "report", WorkflowFile: "/flows/report.yaml", Digest: "sha256:0123abcd",
		Plugins: map[string]string{"llm": "0.1.0", "memory": "1.2.3-rc.1"}, StartedAt: at,
	}
	records := []Record{
		{Seq: 1, Time: at.Add(1), Kind: "start", Body: []byte(`{"input":{"big":12345678901234567890,"none":null}}`)},
		{Seq: 2, Time: at.Add(2 * time.Second), Kind: "finish", Path: "fan/b/clean", Body: []byte(`{ "update": {"text": "<b>é\u0000"} }`)},
		{Seq: 3, Time: at.Add(time.Second), Kind: "finish", Path: "each[3]/fetch"},
		{Seq: 4, Time: at.Add(time.Hour), Kind: "finish", Path: "loop#2/größe", Body: []byte(`"` + strings.Repeat("0123456789", 500) + `"`)},
		{Seq: 5, Time: at.Add(2 * time.Hour), Kind: "status", Path: "ask", Body: []byte(`{"status":"waiting","node":"ask"}`)},
	}
	minimal := Header{Format: 1, RunID: "minimal"}
	fork := header
	fork.RunID, fork.ParentRun, fork.ParentSeq = "20261121-030000-c0ffee", header.RunID, 3
	return []compatCase{
		{name: "waiting", header: header, records: records},
		{name: "forked", header: fork, records: records[:3]},
		{name: "minimal", header: minimal},
		{name: "torn", header: header, records: records[:2], tail: "\x40\x00\x00\x00torn", notes: []string{"torn tail of 8 bytes ignored"}},
		{name: "zeros", header: header, records: records[:4], tail: strings.Repeat("\x00", 4096), notes: []string{"torn tail of 4096 bytes ignored"}},
	}
}

// write makes the file as the present writer does, one append after the other.
func (c compatCase) write(t *testing.T) []byte {
	t.Helper()
	s := testStore(t)
	path := s.journalPath(c.header.RunID)
	if len(c.records) == 0 {
		createEmpty(t, s, c.header)
	} else {
		j, err := s.Create(c.header, flow.DurabilitySync)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range c.records {
			if err := j.Append(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	buf, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return append(buf, c.tail...)
}

// TestReadsFormatV1 reads files that were written by tea 0.1. A failure means
// that a user's waiting run would be lost: mend the reader, not the files.
func TestReadsFormatV1(t *testing.T) {
	t.Parallel()
	for _, c := range compatV1() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join("..", "..", "..", "test", "compat", "v1", c.name+".tea")
			if *update {
				if FormatVersion != 1 {
					t.Fatal("files of version 1 cannot be made any more")
				}
				if err := os.WriteFile(path, c.write(t), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got := mustRead(t, path)
			want := &Contents{Header: c.header, Records: c.records, Notes: c.notes, Size: got.Size, torn: int64(len(c.tail))}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(Contents{})); diff != "" {
				t.Errorf("contents (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWritesFormatV1 notices a change of the format that is not meant: a
// meant one needs a new FormatVersion, a reader for this one, and new files.
func TestWritesFormatV1(t *testing.T) {
	t.Parallel()
	for _, c := range compatV1() {
		want, err := os.ReadFile(filepath.Join("..", "..", "..", "test", "compat", "v1", c.name+".tea"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(c.write(t), want) {
			t.Errorf("%s: the same records give another file than that of version 1", c.name)
		}
	}
}

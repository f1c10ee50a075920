package checkpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/flow"
)

func statusRecord(status flow.Status, node string) Record {
	body, _ := json.Marshal(StatusBody{Status: status, Node: node})
	return Record{Kind: KindStatus, Path: node, Body: body}
}

func TestListShowsTheStatusOfRuns(t *testing.T) {
	t.Parallel()
	finish := Record{Time: testTime.Add(time.Minute), Kind: "finish", Path: "fetch"}
	big := Record{Kind: "finish", Path: "big", Body: []byte(`"` + strings.Repeat("x", 100_000) + `"`)}
	cases := map[string]struct {
		records []Record
		status  flow.Status
		node    string
	}{
		"start only":           {testRecords()[:1], flow.Stopped, ""},
		"killed":               {[]Record{finish}, flow.Stopped, "fetch"},
		"waiting":              {[]Record{finish, statusRecord(flow.Waiting, "ask")}, flow.Waiting, "ask"},
		"failed":               {[]Record{finish, statusRecord(flow.Failed, "fetch")}, flow.Failed, "fetch"},
		"stopped":              {[]Record{statusRecord(flow.Stopped, "loop#2")}, flow.Stopped, "loop#2"},
		"done":                 {[]Record{big, statusRecord(flow.Done, "")}, flow.Done, ""},
		"killed after waiting": {[]Record{statusRecord(flow.Waiting, "ask"), finish}, flow.Stopped, "fetch"},
		"last record is large": {[]Record{finish, big}, flow.Stopped, "big"},
		"unknown status":       {[]Record{statusRecord("running", "x")}, flow.Stopped, "x"},
	}
	for name, c := range cases {
		for _, tail := range []string{"", "torn"} {
			t.Run(name+" "+tail, func(t *testing.T) {
				t.Parallel()
				s := testStore(t)
				path := createRun(t, s, testHeader(), c.records...)
				if tail != "" {
					appendBytes(t, path, []byte("torn"))
				}
				infos, err := s.List()
				if err != nil || len(infos) != 1 {
					t.Fatalf("List: %+v, %v", infos, err)
				}
				got := infos[0]
				if got.Status != c.status || got.Node != c.node || got.Records != len(c.records) || got.Problem != "" {
					t.Errorf("got %+v, want %s at %q with %d records", got, c.status, c.node, len(c.records))
				}
			})
		}
	}
}

func appendBytes(t *testing.T, path string, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
}

func TestListInfo(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	path := createRun(t, s, testHeader(), testRecords()...)
	infos, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	want := []Info{{
		ID: "run", Workflow: "report", Status: flow.Waiting, Node: "ask", StartedAt: testTime, UpdatedAt: testTime,
		WorkflowFile: "/flows/report.yaml", Digest: testHeader().Digest, Path: path, Size: mustRead(t, path).Size, Records: 4, Input: `{"n":12345678901234567890}`,
	}}
	if diff := cmp.Diff(want, infos); diff != "" {
		t.Errorf("infos (-want +got):\n%s", diff)
	}
}

func TestListShowsBrokenFilesAmongOthers(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	good := createRun(t, s, testHeader(), testRecords()...)
	buf, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(buf)
	damaged[len(buf)-20] ^= 1
	for id, content := range map[string][]byte{
		"empty": {}, "text": []byte("hello"), "damaged": damaged,
		"newer": append(preamble(7), "whatever"...),
	} {
		if err := os.WriteFile(s.journalPath(id), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"notes.txt", ".run.tea.tmp", "run.events.jsonl"} {
		if err := os.WriteFile(s.Dir()+"/"+name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	infos, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	problems := map[string]bool{}
	for _, info := range infos {
		problems[info.ID] = info.Problem != ""
		if (info.Status == "") != (info.Problem != "") {
			t.Errorf("%+v: want either a status or a problem", info)
		}
	}
	want := map[string]bool{"run": false, "empty": true, "text": true, "damaged": true, "newer": true}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestListIsNewestFirst(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	for i, id := range []string{"b", "c", "a"} {
		h := testHeader()
		h.RunID, h.StartedAt = id, testTime.Add(time.Duration(i)*time.Hour)
		createRun(t, s, h)
	}
	infos, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, info := range infos {
		got = append(got, info.ID)
	}
	if diff := cmp.Diff([]string{"a", "c", "b"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// makeRuns makes n runs of this size that are done, without waiting for the
// disk.
func makeRuns(t testing.TB, s *Store, n, size int) {
	t.Helper()
	path := createRun(t, s, testHeader(), Record{Kind: "finish", Body: []byte(`"` + strings.Repeat("x", size) + `"`)}, statusRecord(flow.Done, "end"))
	buf, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n - 1 {
		if err := os.WriteFile(s.journalPath(fmt.Sprintf("run%d", i)), buf, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// The work for a list is counted and not timed: it must not read the records.
func TestListReadsTheEndsOnly(t *testing.T) { //nolint:paralleltest // it measures the memory of the whole process
	s := testStore(t)
	makeRuns(t, s, 1000, 50_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	infos, err := s.List()
	runtime.ReadMemStats(&after)
	if err != nil || len(infos) != 1000 {
		t.Fatalf("%d runs, %v", len(infos), err)
	}
	if got := (after.TotalAlloc - before.TotalAlloc) / 1000; got > 10_000 {
		t.Errorf("List takes %d bytes of memory for each run of 50 KB", got)
	}
}

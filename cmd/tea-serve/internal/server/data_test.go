package server

import (
	"strings"
	"testing"

	teacmd "github.com/the-edge-agent/tea/cmd"
)

func TestNamesOfDataDirectories(t *testing.T) {
	t.Parallel()
	s := &server{svc: &teacmd.Service{Runs: "/runs"}}
	long, other := s.dataDir(strings.Repeat("é", 300)), s.dataDir(strings.Repeat("é", 301))
	if name := strings.TrimPrefix(long, "/runs/data/"); len(name) != maxDataName || long == other {
		t.Errorf("long names have the directories %s and %s", long, other)
	}
	for workflow, want := range map[string]string{"report": "report", "..": "%2E.", ".": "%2E", "a b": "a%20b", "relatório": "relat%C3%B3rio", "a%20b": "a%2520b"} {
		if got := s.dataDir(workflow); got != "/runs/data/"+want {
			t.Errorf("%q has the directory %s", workflow, got)
		}
	}
}

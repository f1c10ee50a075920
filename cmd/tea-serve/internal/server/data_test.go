package server

import (
	"testing"

	teacmd "github.com/the-edge-agent/tea/cmd"
)

func TestNamesOfDataDirectories(t *testing.T) {
	t.Parallel()
	s := &server{svc: &teacmd.Service{Runs: "/runs"}}
	for workflow, want := range map[string]string{"report": "report", "..": "%2E.", ".": "%2E", "a b": "a%20b", "relatório": "relat%C3%B3rio", "a%20b": "a%2520b"} {
		if got := s.dataDir(workflow); got != "/runs/data/"+want {
			t.Errorf("%q has the directory %s", workflow, got)
		}
	}
}

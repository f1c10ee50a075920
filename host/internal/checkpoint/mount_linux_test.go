package checkpoint

import (
	"errors"
	"syscall"
	"testing"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/sdk/x/smalldisktest"
)

func TestRealFullDisk(t *testing.T) {
	t.Parallel()
	disk := smalldisktest.New(t, "256k")
	dir := disk.Dir
	s, err := OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	j, err := s.Create(testHeader(), flow.DurabilitySync)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	n, err := fill(j)
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("after %d records: %v, want ENOSPC", n, err)
	}
	c := mustRead(t, j.Path())
	if len(c.Records) != n || len(c.Notes) > 0 {
		t.Errorf("%d records, notes %q; want the %d that were acknowledged", len(c.Records), c.Notes, n)
	}
	h := testHeader()
	h.RunID = "other"
	other, err := s.Create(h, flow.DurabilitySync)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.Append(testRecords()[0]); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a run was created on a full disk: %v", err)
	}
	if names := dirNames(t, dir); len(names) != 1 {
		t.Errorf("the failed creation left files: %q", names)
	}
	disk.Resize(t, "1m")
	if err := j.Append(Record{Kind: "after"}); err != nil {
		t.Fatalf("after space was made: %v", err)
	}
	if got := mustRead(t, j.Path()).Records; len(got) != n+1 || got[n].Kind != "after" {
		t.Errorf("%d records, want %d", len(got), n+1)
	}
}

func TestReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	disk := smalldisktest.New(t, "1m")
	dir := disk.Dir
	s, err := OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	path := createRun(t, s, testHeader(), testRecords()...)
	disk.Protect(t, true)
	if _, err := OpenStore(dir); !errors.Is(err, syscall.EROFS) {
		t.Errorf("OpenStore: %v, want that it is read-only", err)
	}
	if _, _, err := s.Open("run", flow.DurabilitySync); !errors.Is(err, syscall.EROFS) {
		t.Errorf("Open: %v, want that it is read-only", err)
	}
	view, err := ViewStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	if infos, err := view.List(); err != nil || len(infos) != 1 || infos[0].Status != flow.Waiting {
		t.Errorf("List: %+v, %v", infos, err)
	}
	wantRecords(t, mustRead(t, path).Records, testRecords())
}

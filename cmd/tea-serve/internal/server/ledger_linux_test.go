package server

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/sdk/x/smalldisktest"
)

func TestFullDiskLosesNothing(t *testing.T) {
	t.Parallel()
	disk := smalldisktest.New(t, "256k")
	l := openTest(t, disk.Dir)
	l.putTest(t, acceptTest("a"))
	disk.Fill(t, 0)
	refused := 0
	for refused == 0 { // the last page of the file has room
		l.mu.Lock()
		b, err := l.add(true, acceptTest("b"))
		l.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		if b.wait() != nil {
			refused++
			l.mu.Lock()
			delete(l.state.items, "b") // as accept does
			l.mu.Unlock()
		}
	}
	disk.Free(t)
	l.putTest(t, acceptTest("c"))
	want := l.ids()
	l.close()
	l = openTest(t, disk.Dir)
	defer l.close()
	if diff := cmp.Diff(want, l.ids()); diff != "" || !want["a"] || !want["c"] {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
}

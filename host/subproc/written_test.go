package subproc

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// The first start of a plugin waits until its file is no longer open for writing, as a swap
// does. A process forked while it was written may still have it open.
func TestFirstStartOfABinaryThatIsOpenForWriting(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it waits for a writer")
	dir, _, host := swappable(t, Options{}) // its manifest is known
	files, err := filepath.Glob(filepath.Join(dir, prefix+"*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	writer, err := os.OpenFile(files[0], os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	released := time.AfterFunc(5*writingWait, func() { _ = writer.Close() })
	defer released.Stop()
	host.wantVersion(t, "1.0.0")
}

package serve

import (
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// residentFiles returns the pages of files that are mapped.
func residentFiles(t *testing.T) (pages int64) {
	t.Helper()
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(statm), &size, &resident, &pages); err != nil {
		t.Fatal(err)
	}
	return pages
}

//nolint:paralleltest // it counts the pages of the process
func TestTrimReleasesPagesOfFiles(t *testing.T) {
	before := residentFiles(t)
	trimFiles("/proc/self/smaps")
	// What runs meanwhile is mapped again.
	if after := residentFiles(t); after > before*3/4 {
		t.Errorf("%d pages of files are mapped, %d before", after, before)
	}
}

func TestOnlyUnchangedPagesOfFilesAreTrimmed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fields []string
		want   mapping
	}{
		"code":   {[]string{"400000-401000", "r-xp", "0", "fe:00", "1", "/p"}, mapping{start: 0x400000, end: 0x401000, file: true}},
		"data":   {[]string{"400000-401000", "rw-p", "0", "fe:00", "1", "/p"}, mapping{start: 0x400000, end: 0x401000}},
		"shared": {[]string{"400000-401000", "r--s", "0", "fe:00", "1", "/p"}, mapping{start: 0x400000, end: 0x401000}},
		"heap":   {[]string{"400000-401000", "r--p", "0", "00:00", "0"}, mapping{start: 0x400000, end: 0x401000}},
		"vdso":   {[]string{"400000-401000", "r-xp", "0", "00:00", "0", "[vdso]"}, mapping{start: 0x400000, end: 0x401000}},
		"broken": {[]string{"400000", "r-xp", "0", "fe:00", "1", "/p"}, mapping{start: 0x400000}},
	} {
		if diff := cmp.Diff(c.want, parseMapping(c.fields), cmp.AllowUnexported(mapping{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAPauseFollowsTheLastCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &calls{}
		paused := make(chan struct{})
		go func() {
			c.waitForPause(0, trimAgain)
			close(paused)
		}()
		isPaused := func() bool {
			synctest.Wait()
			select {
			case <-paused:
				return true
			default:
				return false
			}
		}
		<-time.After(time.Hour)
		if isPaused() {
			t.Error("a pause without a call")
		}
		c.begin("long")
		<-time.After(time.Hour)
		if isPaused() {
			t.Error("a pause during a call")
		}
		c.end("long")
		for range 10 {
			<-time.After(trimAgain / 2)
			c.begin("short")
			c.end("short")
		}
		if isPaused() {
			t.Error("a pause between calls that follow each other")
		}
		<-time.After(2 * trimAgain)
		if !isPaused() {
			t.Error("no pause after the last call")
		}
		c.begin("while the memory is trimmed")
		c.end("while the memory is trimmed")
		if begun := c.waitForPause(c.begun-1, trimAgain); begun != c.begun {
			t.Errorf("%d calls, want %d", begun, c.begun)
		}
	})
}

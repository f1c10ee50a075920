package serve

import (
	"fmt"
	"os"
	"testing"

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
func TestTrimGivesTheFilesBack(t *testing.T) {
	before := residentFiles(t)
	trimFiles("/proc/self/smaps")
	if after := residentFiles(t); after > before/2 {
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

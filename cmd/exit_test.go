package teacmd

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/cmd/internal/report"
)

// The words around an error with an exit code were not printed.
func TestWrappedErrorKeepsItsExitCode(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		want string
	}{
		{usageErrorf("no file"), "tea: error: no file\n"},
		{fmt.Errorf("start: %w", usageErrorf("no file")), "tea: error: start: no file\n"},
		{errors.Join(usageErrorf("no file"), errors.New("the disk is full")), "tea: error: no file\nthe disk is full\n"},
		{&exitError{code: exitUsage}, ""},
	} {
		var out strings.Builder
		a := &app{report: report.New(&out, report.Options{})}
		if code := a.explain(test.err); code != exitUsage || out.String() != test.want {
			t.Errorf("code %d, %q; want %q", code, &out, test.want)
		}
	}
}

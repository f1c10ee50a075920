package plugproc

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAPluginGetsTheVariablesThatItNeedsAndNoKeys(t *testing.T) {
	t.Parallel()
	host := []string{"PATH=/bin", "DECLARED=1", "OPENAI_API_KEY=secret", "HOME=/root", "LD_PRELOAD=x.so", "DECLARED_NOT=1", "broken"}
	want := []string{"PATH=/bin", "DECLARED=1", "HOME=/root", "EXTRA=yes"}
	if diff := cmp.Diff(want, cleanEnv(host, []string{"DECLARED"}, []string{"EXTRA=yes"})); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

package seal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A copy of a closed graph has no log, so the log of the other graph stays in the folder.
func TestLogBesideASealedDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "graph")
	log := path + ".log"
	for _, name := range []string{path, log} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Write(path, log); err != nil {
		t.Fatal(err)
	}
	if sealed, err := Check(t.Context(), path, log); !sealed || err != nil {
		t.Errorf("with an empty log: %t, %v", sealed, err)
	}
	if err := os.WriteFile(log, []byte("changes"), 0o600); err != nil {
		t.Fatal(err)
	}
	if sealed, err := Check(t.Context(), path, log); sealed || err == nil || !strings.Contains(err.Error(), log+" does not belong to the database") {
		t.Errorf("with a log: %t, %v", sealed, err)
	}
	if err := Remove(path); err != nil {
		t.Fatal(err)
	}
	if sealed, err := Check(t.Context(), path, log); sealed || err != nil {
		t.Errorf("without a seal: %t, %v", sealed, err)
	}
}

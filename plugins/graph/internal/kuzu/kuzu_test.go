//go:build linux && (amd64 || arm64) && !lite

package kuzu

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
	"github.com/the-edge-agent/tea/plugins/graph/internal/storetest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(killedFolder); dir != "" {
		fmt.Fprintln(os.Stderr, write(dir))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// need skips a test where the library is not prepared. In CI that is a failure.
func need(t testing.TB) {
	t.Helper()
	if _, err := load(""); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	need(t)
	storetest.Run(t, Open)
}

// BenchmarkPut compares with a statement of its own transaction.
func BenchmarkPut(b *testing.B) {
	need(b)
	s, err := Open(b.Context(), store.Options{Dir: b.TempDir(), Create: true})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	db := s.(*DB)
	w := writing{namespace: "default"}
	names := slices.Sorted(maps.Keys(w.entityRow(&store.Entity{})))
	for i, name := range names {
		names[i] = name + ": $" + name
	}
	create := "CREATE (:Entity {" + strings.Join(names, ", ") + "})"
	storetest.Put(b, db, func(e store.Entity) error {
		_, err := db.writer.query(b.Context(), create, w.entityRow(&e))
		return err
	})
}

package memory_test

import (
	"reflect"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/duckdb"
	"github.com/the-edge-agent/tea/sdk/x/words"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// engines are the databases of this build.
func engines() []string {
	if duckdb.Available {
		return []string{"sqlite", "duckdb"}
	}
	return []string{"sqlite"}
}

// A wrong language is an error in the workflow's file, not in the first search.
func TestTheSettingsNameEveryLanguage(t *testing.T) {
	t.Parallel()
	field, _ := reflect.TypeFor[memory.LTMSettings]().FieldByName("Language")
	same(t, "languages", field.Tag.Get("enum"), strings.Join(words.Languages(), ","))
}

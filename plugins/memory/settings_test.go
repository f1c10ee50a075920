package memory_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
)

// TestTheSettingsNameEveryLanguage: what is wrong there is found where it
// stands in the workflow's file, not by the first search.
func TestTheSettingsNameEveryLanguage(t *testing.T) {
	t.Parallel()
	field, _ := reflect.TypeFor[memory.LTMSettings]().FieldByName("Language")
	same(t, "languages", field.Tag.Get("enum"), strings.Join(fulltext.Languages(), ","))
}

package llm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHeadOfASkill expects what skills-ref 0.1.1, the reference library of the format, reads,
// except that three hyphens do not end a description.
func TestHeadOfASkill(t *testing.T) {
	t.Parallel()
	for head, want := range map[string]string{
		"name: x\ndescription: Reads logs --- also large ones":         "Reads logs --- also large ones",
		"name: x\ndescription: >\n  Use for C # code\n  and more":      "Use for C # code and more",
		"name: x\ndescription: |-\n  'one' is\n  quoted, 'two'":        "'one' is quoted, 'two'",
		"name: x\ndescription: \"a: b # c\" # note":                    "a: b # c",
		"name: x\ndescription: 'it''s # one' # note":                   "it's # one",
		"name: x\ndescription: \"a\\u00e9\\tb\"":                       "aé\tb",
		"name: x\ndescription: one # note":                             "one",
		"name: x\ndescription: one\n  two":                             "one two",
		"name: x\ndescription: yes":                                    "yes",
		"name: größe-messen-2\ndescription: y":                         "y",
		"name: x\ndescription: " + strings.Repeat("é", 1024):           strings.Repeat("é", 1024),
		"name: x\ndescription: y\nmetadata:\n  description: \"other\"": "y",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("---\n"+head+"\n---\nText\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if skills, err := skillsIn(t.Context(), dir); err != nil || skills[0].description != want {
			t.Errorf("%q: %v, %v", head, skills, err)
		}
	}
	for _, head := range []string{"name: Pump\ndescription: y", "name: a_b\ndescription: y", "name: x", "name: " + strings.Repeat("é", 65) + "\ndescription: y", "name: x\ndescription: " + strings.Repeat("é", 1025)} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("---\n"+head+"\n---\nText\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if skills, err := skillsIn(t.Context(), dir); err == nil {
			t.Errorf("%q: %v", head, skills)
		}
	}
}

package engine

import "testing"

func TestPathWithoutAttempts(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"fetch": "fetch", "a>b~2/clean": "a>b/clean", "each~2[3]": "each[3]", "each~12[3]/x#2": "each[3]/x#2",
		"n~2": "n", "a~2>b": "a>b", "n~2/m~3!llm.call:00": "n/m!llm.call:00", "a~b/c": "a~b/c", "a~/c~2x": "a~/c~2x",
	} {
		if got := withoutAttempts(path); got != want {
			t.Errorf("withoutAttempts(%q) = %q, want %q", path, got, want)
		}
	}
}

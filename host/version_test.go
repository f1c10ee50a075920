package host

import "testing"

func TestSatisfies(t *testing.T) {
	t.Parallel()
	tests := []struct {
		version, constraint string
		want                bool
	}{
		{"1.2.3", "", true},
		{"1.2.3", "1.2.3", true},
		{"1.2.3", ">=1.2, <2", true},
		{"1.2.3", ">= 1.2 < 2", true},
		{"2.0.0", ">=1.2, <2", false},
		{"1.9.0", "^1.2", true},
		{"2.0.0", "^1.2", false},
		{"0.3.0", "^0.2.1", false},
		{"1.2.9", "~1.2.3", true},
		{"1.3.0", "~1.2.3", false},
		{"1.3.0-rc.1", ">=1.3.0", false},
		{"1.2.3", "!=1.2.3", false},
		{"1.2.3", "=>1", false},
		{"1.2.3", "newest", false},
		{"unknown", ">=1", false},
	}
	for _, test := range tests {
		if err := satisfies(test.version, test.constraint); (err == nil) != test.want {
			t.Errorf("satisfies(%q, %q) = %v, want %t", test.version, test.constraint, err, test.want)
		}
	}
}

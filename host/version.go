package host

import (
	"fmt"
	"strings"

	"golang.org/x/mod/semver"
)

// satisfies checks a bundle's version against a constraint: comparisons that must all
// hold, separated by commas or spaces, such as ">=1.2, <2". ^1.2 allows versions up to
// the next major version, ~1.2 up to the next minor one; a bare version allows only
// itself.
func satisfies(version, constraint string) error {
	v := "v" + strings.TrimPrefix(version, "v")
	if constraint != "" && !semver.IsValid(v) {
		return fmt.Errorf("its version %q is not a semantic version", version)
	}
	// A space between operator and version is allowed.
	text := strings.NewReplacer("= ", "=", "> ", ">", "< ", "<", "^ ", "^", "~ ", "~").Replace(constraint)
	for _, term := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		ok, err := holds(v, term)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("version %s does not satisfy %s", version, constraint)
		}
	}
	return nil
}

// holds reports whether a version satisfies one comparison.
func holds(v, term string) (bool, error) {
	operator := term[:strings.IndexFunc(term+"0", func(r rune) bool { return r == 'v' || r >= '0' && r <= '9' })]
	want := "v" + strings.TrimPrefix(term[len(operator):], "v")
	if !semver.IsValid(want) {
		return false, fmt.Errorf("the constraint %q is malformed", term)
	}
	order := semver.Compare(v, want)
	switch operator {
	case "", "=", "==":
		return order == 0, nil
	case "!=":
		return order != 0, nil
	case ">":
		return order > 0, nil
	case ">=":
		return order >= 0, nil
	case "<":
		return order < 0, nil
	case "<=":
		return order <= 0, nil
	case "^":
		same := semver.Major
		if semver.Major(want) == "v0" {
			same = semver.MajorMinor
		}
		return order >= 0 && same(v) == same(want), nil
	case "~":
		return order >= 0 && semver.MajorMinor(v) == semver.MajorMinor(want), nil
	}
	return false, fmt.Errorf("the constraint %q has an unknown operator %q", term, operator)
}

package host

import (
	"fmt"

	"github.com/Masterminds/semver/v3"
)

// satisfies checks a bundle's version against a constraint such as ">=1.2, <2".
func satisfies(version, constraint string) error {
	if constraint == "" {
		return nil
	}
	c, err := semver.NewConstraint(constraint)
	if err != nil {
		return fmt.Errorf("the constraint %q is malformed", constraint)
	}
	v, err := semver.NewVersion(version)
	if err != nil {
		return fmt.Errorf("its version %q is no semantic version", version)
	}
	if !c.Check(v) {
		return fmt.Errorf("version %s does not satisfy %s", version, constraint)
	}
	return nil
}

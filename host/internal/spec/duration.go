package spec

import (
	"math"
	"time"

	"github.com/the-edge-agent/tea/host/internal/source"
	"github.com/the-edge-agent/tea/sdk/value"
)

// maxDuration keeps sums of durations inside the range of the type.
const maxDuration = 100 * 365 * 24 * time.Hour

// duration reads a number of units, or a text such as 1m30s. The problem is
// "" where it is one.
func duration(n *source.Node, unit time.Duration) (d time.Duration, problem string) {
	if n.Kind == source.String {
		parsed, err := time.ParseDuration(n.Text)
		if err != nil {
			return 0, "\"" + n.Text + "\" is not a duration"
		}
		d = parsed
	} else {
		v, ok := value.Float(n.Scalar)
		if !ok || math.Abs(v) > float64(maxDuration/unit) {
			return 0, n.Text + " is too long"
		}
		d = time.Duration(v * float64(unit))
	}
	switch {
	case d < 0:
		return 0, "a duration cannot be negative"
	case d > maxDuration:
		return 0, n.Text + " is too long"
	}
	return d, ""
}

package checkpoint

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"
)

// NewRunID makes an id like 20261121-024512-7k3f9q: sorted by time, short,
// safe as a file name, and with enough chance in it for runs of one second.
func NewRunID(now time.Time) string {
	// 32 letters and digits without those that are mistaken for others.
	const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
	var random [6]byte
	rand.Read(random[:]) // never fails
	for i, b := range random {
		random[i] = alphabet[b%byte(len(alphabet))]
	}
	return now.UTC().Format("20060102-150405-") + string(random[:])
}

// checkRunID makes sure that id can be a file's name, and no other file's.
func checkRunID(id string) error {
	const longest = 100
	if id == "" || len(id) > longest || strings.HasPrefix(id, "-") || strings.ContainsFunc(id, notInRunID) {
		return fmt.Errorf("run id %q: want 1 to %d letters, digits, - and _, not beginning with -", id, longest)
	}
	return nil
}

func notInRunID(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
}

package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// age is a duration on the command line; it knows days (30d).
type age time.Duration

// UnmarshalText reads 90m, 12h or 30d.
func (d *age) UnmarshalText(text []byte) error {
	if days, ok := strings.CutSuffix(string(text), "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		if err == nil && n >= 0 {
			*d = age(n * 24 * float64(time.Hour))
			return nil
		}
	}
	v, err := time.ParseDuration(string(text))
	if err != nil || v < 0 {
		return fmt.Errorf("%q is no age; write 90m, 12h or 30d", text)
	}
	*d = age(v)
	return nil
}

// size is a number of bytes on the command line; it knows KB, MB and GB.
type size int64

// UnmarshalText reads 1000, 64KB, 256MB or 2GB.
func (s *size) UnmarshalText(text []byte) error {
	digits, unit := strings.TrimSuffix(strings.ToUpper(string(text)), "B"), int64(1)
	for i, suffix := range []string{"K", "M", "G"} {
		if cut, ok := strings.CutSuffix(digits, suffix); ok {
			digits, unit = cut, 1<<(10*(i+1))
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return fmt.Errorf("%q is no size; write 1000, 64KB, 256MB or 2GB", text)
	}
	*s = size(n * unit)
	return nil
}

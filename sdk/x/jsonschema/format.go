package jsonschema

import (
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// formatFault describes the expected format of a string. It returns "" if the string has the
// format or the format is not checked.
func formatFault(format, s string) string {
	switch format {
	case "date-time":
		if !isDateTime(s) {
			return "a date and time such as 2026-01-31T12:00:00Z"
		}
	case "date":
		if _, err := time.Parse(time.DateOnly, s); err != nil {
			return "a date such as 2026-01-31"
		}
	case "email":
		if address, err := mail.ParseAddress(s); err != nil || address.Address != s {
			return "an email address"
		}
	case "uri":
		if !isURI(s) {
			return "a URI such as https://example.com/"
		}
	case "uuid":
		if !isUUID(s) {
			return "a UUID such as 123e4567-e89b-12d3-a456-426614174000"
		}
	case "re2":
		if _, err := regexp.Compile(s); err != nil {
			return "a regular expression such as [a-z]+"
		}
	case "timezone":
		if _, err := time.LoadLocation(s); err != nil && hasZones() {
			return "a time zone such as Europe/Berlin"
		}
	case "ipv4":
		if a, err := netip.ParseAddr(s); err != nil || !a.Is4() {
			return "an IPv4 address"
		}
	case "ipv6":
		if a, err := netip.ParseAddr(s); err != nil || !a.Is6() || a.Zone() != "" {
			return "an IPv6 address"
		}
	}
	return ""
}

// hasZones reports whether the machine has a database of time zones.
func hasZones() bool {
	_, err := time.LoadLocation("Europe/London")
	return err == nil
}

// isDateTime follows RFC 3339: T and Z in either case, and leap seconds if the offset allows
// them.
func isDateTime(s string) bool {
	if len(s) < len("2006-01-02T15:04:05Z") || strings.ContainsRune(s, ',') {
		return false
	}
	s = strings.ToUpper(s)
	leap := s[17:19] == "60"
	if leap {
		s = s[:17] + "59" + s[19:]
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return false
	}
	utc := t.UTC()
	return !leap || utc.Hour() == 23 && utc.Minute() == 59
}

func isURI(s string) bool {
	if strings.ContainsAny(s, " \\^`{|}<>\"") {
		return false
	}
	for _, r := range s {
		if r <= ' ' || r > '~' {
			return false
		}
	}
	u, err := url.Parse(s)
	return err == nil && u.Scheme != ""
}

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, c := range []byte(s) {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return false
			}
			continue
		}
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
			return false
		}
	}
	return true
}

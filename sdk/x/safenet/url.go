package safenet

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	tea "github.com/the-edge-agent/tea/sdk"
)

// maxURL bounds the length of an address.
const maxURL = 8192

// ParseURL checks and normalises an address: http or https, a valid host, no user name
// or password, no fragment. The host is in lower case and in ASCII. The error is a
// validation_error.
func ParseURL(text string) (*url.URL, error) {
	if len(text) > maxURL {
		return nil, tea.Errorf(tea.ValidationError, "the URL is longer than %d bytes", maxURL)
	}
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "%q is not a valid URL", text)
	}
	if err := Normalise(u); err != nil {
		return nil, err
	}
	return u, nil
}

// Normalise is like [ParseURL] for a parsed address.
func Normalise(u *url.URL) error {
	u.Scheme = strings.ToLower(u.Scheme)
	if u.Scheme == "" {
		return tea.Errorf(tea.ValidationError, "the URL %q has no scheme; write https://%s", u.Redacted(), strings.TrimLeft(u.Redacted(), "/"))
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return tea.Errorf(tea.ValidationError, "%q is not an http or https URL", u.Redacted())
	}
	if u.User != nil {
		return tea.Errorf(tea.ValidationError, "the URL %q contains a user name; remove it, as credentials are not sent", u.Redacted())
	}
	if u.Opaque != "" {
		return tea.Errorf(tea.ValidationError, "%q is not a valid URL; write %s://HOST/", u.String(), u.Scheme)
	}
	host, err := hostName(u.Hostname())
	if err != nil {
		return err
	}
	port := u.Port()
	if port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return tea.Errorf(tea.ValidationError, "the URL %q has an invalid port", u.String())
		}
	}
	switch {
	case port == "" || u.Scheme == "http" && port == "80" || u.Scheme == "https" && port == "443":
		u.Host = host
		if strings.Contains(host, ":") {
			u.Host = "[" + host + "]"
		}
	default:
		u.Host = net.JoinHostPort(host, port)
	}
	if u.Path == "" {
		u.Path = "/"
	}
	u.Fragment, u.RawFragment = "", ""
	return nil
}

// hostName normalises the host of an address. It refuses numbers that only some
// programs read as an IPv4 address, such as 0x7f.1 or 2130706433.
func hostName(host string) (string, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().String(), nil
	}
	ascii, err := idna.Lookup.ToASCII(host)
	if err != nil || ascii == "" {
		if ascii, err = lenientHost(host); err != nil {
			return "", tea.Errorf(tea.ValidationError, "%q is not a valid host name", host)
		}
	}
	ascii = strings.ToLower(strings.TrimSuffix(ascii, "."))
	if a, err := netip.ParseAddr(ascii); err == nil {
		return a.Unmap().String(), nil
	}
	last := ascii[strings.LastIndexByte(ascii, '.')+1:]
	if ascii == "" || isNumber(last) {
		return "", tea.Errorf(tea.ValidationError, "%q is not a valid host name; write an IPv4 address as four decimal numbers", host)
	}
	return ascii, nil
}

// lenientHost accepts ASCII names that are valid in the DNS but not as
// internationalised names, such as those with an underscore.
func lenientHost(host string) (string, error) {
	if host == "" || len(host) > 253 {
		return "", strconv.ErrSyntax
	}
	for _, c := range []byte(host) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
		default:
			return "", strconv.ErrSyntax
		}
	}
	return host, nil
}

// isNumber reports whether browsers read a host with this last label as an IPv4
// address: digits, or 0x and hexadecimal digits.
func isNumber(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return label != "" && strings.Trim(label, "0123456789") == ""
}

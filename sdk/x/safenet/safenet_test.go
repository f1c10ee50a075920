package safenet_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/safenet"
)

func TestIsPublic(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "172.32.0.1": true, "192.167.255.255": true, "100.128.0.1": true, "2606:4700::1111": true, "2a00:1450:4001::1": true,
		"64:ff9b::808:808": true, "::ffff:8.8.8.8": true,
		"127.0.0.1": false, "127.8.9.10": false, "0.0.0.0": false, "0.1.2.3": false, "10.1.2.3": false, "172.16.0.1": false, "172.31.255.255": false, "192.168.1.1": false,
		"169.254.169.254": false, "100.64.0.1": false, "100.100.100.200": false, "168.63.129.16": false, "192.0.0.192": false, "192.0.2.1": false, "198.18.0.1": false,
		"224.0.0.1": false, "239.255.255.250": false, "240.0.0.1": false, "255.255.255.255": false, "192.88.99.1": false,
		"::": false, "::1": false, "::127.0.0.1": false, "::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::ffff:0:127.0.0.1": false, "fe80::1": false, "fec0::1": false, "fc00::1": false, "fd00:ec2::254": false,
		"ff02::1": false, "64:ff9b::7f00:1": false, "64:ff9b::a9fe:a9fe": false, "64:ff9b:1::1": false, "2002:7f00:1::": false, "2002:808:808::": false, "2001::1": false,
		"2001:db8::1": false, "3fff::1": false, "5f00::1": false, "100::1": false, "fe80::1%lo": false, "2606:4700::1111%eth0": false,
	} {
		if got := safenet.IsPublic(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: public = %v, want %v", text, got, want)
		}
	}
	if safenet.IsPublic(netip.Addr{}) {
		t.Error("the zero address is public")
	}
}

func TestParseURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"http://Example.COM":                   "http://example.com/",
		"HTTPS://example.com:443/a?b#c":        "https://example.com/a?b",
		"http://example.com:80/":               "http://example.com/",
		"http://example.com:8080/":             "http://example.com:8080/",
		"http://example.com./":                 "http://example.com/",
		"http://bücher.example/ß":              "http://xn--bcher-kva.example/%C3%9F",
		"http://ＥＸＡＭＰＬＥ.com/":                  "http://example.com/",
		"http://a_b.example/":                  "http://a_b.example/",
		"http://[::1]:8080/":                   "http://[::1]:8080/",
		"http://[::ffff:127.0.0.1]/":           "http://127.0.0.1/",
		"http://１２７.0.0.1/":                    "http://127.0.0.1/",
		"http://127。0。0。1/":                    "http://127.0.0.1/",
		" http://example.com/x ":               "http://example.com/x",
		"http://example.com/a b":               "http://example.com/a%20b",
		"http://2130706433/":                   "",
		"http://0x7f000001/":                   "",
		"http://0x7f.1/":                       "",
		"http://0177.0.0.1/":                   "",
		"http://127.1/":                        "",
		"http://127.0.0.1.":                    "http://127.0.0.1/",
		"http://0x/":                           "",
		"http://user:secret@example.com/":      "",
		"http://user@example.com/":             "",
		"ftp://example.com/":                   "",
		"file:///etc/passwd":                   "",
		"gopher://example.com/":                "",
		"javascript:alert(1)":                  "",
		"data:text/html,x":                     "",
		"//example.com/":                       "",
		"example.com":                          "",
		"http:example.com":                     "",
		"http://":                              "",
		"http://:80/":                          "",
		"http://example.com:0/":                "",
		"http://example.com:99999/":            "",
		"http://exa mple.com/":                 "",
		"http://example.com\r\nX: y/":          "",
		"http://localhost%00.example.com/":     "",
		"http://[fe80::1%25eth0]/":             "http://[fe80::1%25eth0]/",
		"http://127.0.0.1%2f@example.com/":     "",
		"http://example.com\\@127.0.0.1/":      "",
		"http://xn--a.example/":                "http://xn--a.example/",
		"http://" + string(make([]byte, 9000)): "",
	} {
		u, err := safenet.ParseURL(text)
		got := ""
		if err == nil {
			got = u.String()
		} else if e := tea.AsError(err); e.Type != tea.ValidationError {
			t.Errorf("%q: error %v, want a validation_error", text, err)
		}
		if got != want {
			t.Errorf("%.60q: got %q, want %q (%v)", text, got, want, err)
		}
	}
}

// An error does not repeat the password of an address.
func TestParseURLHidesPassword(t *testing.T) {
	t.Parallel()
	_, err := safenet.ParseURL("http://user:hunter2@example.com/")
	if want := `validation_error: the URL "http://user:xxxxx@example.com/" contains a user name; remove it, as credentials are not sent`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// An error says what to write instead.
func TestParseURLNamesRemedy(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"example.com/a":       `validation_error: the URL "example.com/a" has no scheme; write https://example.com/a`,
		"//example.com/a":     `validation_error: the URL "//example.com/a" has no scheme; write https://example.com/a`,
		"http:example.com":    `validation_error: "http:example.com" is not a valid URL; write http://HOST/`,
		"http://2130706433/":  `validation_error: "2130706433" is not a valid host name; write an IPv4 address as four decimal numbers`,
		"ftp://example.com/a": `validation_error: "ftp://example.com/a" is not an http or https URL`,
	} {
		if _, err := safenet.ParseURL(text); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func server(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("inside")) }))
	t.Cleanup(s.Close)
	return s
}

func TestDialRefusesAddresses(t *testing.T) {
	t.Parallel()
	_, port, _ := net.SplitHostPort(server(t).Listener.Addr().String())
	for _, host := range []string{"127.0.0.1", "localhost", "127.0.0.2", "0.0.0.0", "::ffff:127.0.0.1", "::"} {
		conn, err := new(safenet.Guard).Dial(t.Context(), "tcp", net.JoinHostPort(host, port))
		if err == nil {
			conn.Close()
			t.Errorf("connected to %s", host)
		}
	}
	conn, err := (&safenet.Guard{AllowPrivate: true}).Dial(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

// dnsServer answers each question about IPv4 addresses with the next address.
func dnsServer(t *testing.T, answers ...[4]byte) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		buf := make([]byte, 512)
		for n := 0; ; {
			size, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:size]) != nil {
				continue
			}
			reply := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true}, Questions: m.Questions}
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				reply.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}, Body: &dnsmessage.AResource{A: answers[min(n, len(answers)-1)]}}}
				n++
			}
			packed, err := reply.Pack()
			if err == nil {
				conn.WriteTo(packed, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// A name whose address changes between two look-ups is refused at the second
// connection.
func TestDialRefusesChangedDNS(t *testing.T) {
	t.Parallel()
	_, port, _ := net.SplitHostPort(server(t).Listener.Addr().String())
	resolver := dnsServer(t, [4]byte{127, 0, 0, 1})
	open := &safenet.Guard{AllowPrivate: true, Resolver: resolver}
	conn, err := open.Dial(t.Context(), "tcp", "rebind.example.com:"+port)
	if err != nil {
		t.Fatalf("the name does not lead to the server: %v", err)
	}
	conn.Close()
	_, err = (&safenet.Guard{Resolver: resolver, Remedy: "set settings.web.allow_private: true to allow it"}).Dial(t.Context(), "tcp", "rebind.example.com:"+port)
	e := tea.AsError(err)
	if e == nil || e.Type != tea.PermissionDenied || e.Retryable {
		t.Fatalf("got %v, want a permission_denied error that is not retryable", err)
	}
	want := "rebind.example.com has the address 127.0.0.1, which is not public; set settings.web.allow_private: true to allow it"
	if diff := cmp.Diff(want, e.Message); diff != "" {
		t.Error(diff)
	}
}

// The transport checks the address of each request, whatever the proxy of the
// environment is, and decompresses nothing.
func TestTransportIsGuarded(t *testing.T) {
	s := server(t)
	t.Setenv("HTTP_PROXY", s.URL)
	t.Setenv("http_proxy", s.URL)
	transport := new(safenet.Guard).Transport()
	defer transport.CloseIdleConnections()
	req, _ := http.NewRequest(http.MethodGet, s.URL, http.NoBody)
	resp, err := transport.RoundTrip(req)
	if err == nil {
		resp.Body.Close()
		t.Fatal("the request was sent")
	}
	if e := tea.AsError(err); e.Type != tea.PermissionDenied {
		t.Errorf("got %v, want permission_denied", err)
	}
}

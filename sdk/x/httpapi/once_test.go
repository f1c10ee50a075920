package httpapi

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/the-edge-agent/tea/sdk/x/httpapi/servertest"
)

var methods = map[string]bool{ // whether a server may get the request twice
	http.MethodPost: false, http.MethodPatch: false, http.MethodPut: false, http.MethodDelete: false, "PROPPATCH": false,
	http.MethodGet: true, http.MethodHead: true, http.MethodOptions: true,
}

// send makes a request with a body, if it is not empty, and a key in the header name.
func send(t *testing.T, client *http.Client, method, url, body, name string) error {
	t.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, content)
	if err != nil {
		t.Fatal(err)
	}
	if name != "" {
		req.Header.Set(name, "k")
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// net/http repeats a request with an Idempotency-Key on a new connection if a reused
// one ended before the answer: a server that had read it acted twice.
func TestServerThatClosesAReusedConnectionGetsARequestTwice(t *testing.T) {
	t.Parallel()
	for method, repeated := range methods {
		for _, body := range []string{"", "x", strings.Repeat("x", 1<<20)} {
			for _, name := range []string{"", "Idempotency-Key", "X-Idempotency-Key", "idempotency-KEY"} {
				server := servertest.Start(t, servertest.Reply{}, servertest.Reply{Then: servertest.Break}, servertest.Reply{})
				client, err := NewHTTP(Route{})
				if err != nil {
					t.Fatal(err)
				}
				if err := send(t, client, http.MethodGet, server.URL, "", ""); err != nil { // opens the connection
					t.Fatal(err)
				}
				err = send(t, client, method, server.URL, body, name)
				client.CloseIdleConnections()
				seen := server.Seen()[1:]
				if want := 1; repeated && (err != nil || len(seen) != want+1) || !repeated && (err == nil || len(seen) != want) {
					t.Errorf("%s with %d bytes and %q: %d requests, %v", method, len(body), name, len(seen), err)
				}
				if name != "" && seen[0].Header.Get(name) != "k" {
					t.Errorf("%s: the header %s is missing in %v", method, name, seen[0].Header)
				}
			}
		}
	}
}

// refusing is a server of HTTP/2 that answers the first request of the path /work with
// an error of the stream after it has read it, and the next ones with the status 200.
type refusing struct {
	code     uint32
	requests atomic.Int32
}

func (s *refusing) serve(conn net.Conn) {
	defer conn.Close()
	const (
		data, headers, reset, settings, ack, endStream, endHeaders = 0, 1, 3, 4, 1, 1, 4
	)
	write := func(kind, flags byte, stream uint32, payload []byte) {
		head := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind)) //nolint:gosec // a few bytes
		_, _ = conn.Write(append(binary.BigEndian.AppendUint32(append(head, flags), stream), payload...))
	}
	in := bufio.NewReader(conn)
	_, _ = in.Discard(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	write(settings, 0, 0, nil)
	for {
		var head [9]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return
		}
		length, kind, flags, stream := binary.BigEndian.Uint32(head[:])>>8, head[3], head[4], binary.BigEndian.Uint32(head[5:])
		_, _ = in.Discard(int(length))
		switch {
		case kind == settings && flags&ack == 0:
			write(settings, ack, 0, nil)
		case (kind == data || kind == headers) && flags&endStream != 0:
			if s.requests.Add(1) == 1 {
				write(reset, 0, stream, binary.BigEndian.AppendUint32(nil, s.code))
			} else {
				write(headers, endStream|endHeaders, stream, []byte{0x88}) // :status 200
			}
		}
	}
}

// Over HTTP/2 net/http repeats every request up to seven times after some errors of
// its stream, whether or not it has a key.
func TestServerThatResetsAStreamGetsARequestTwice(t *testing.T) {
	t.Parallel()
	for _, code := range []uint32{1 /* PROTOCOL_ERROR */, 7 /* REFUSED_STREAM */} {
		for method, repeated := range methods {
			for _, body := range []string{"", "x"} {
				listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				server := &refusing{code: code}
				ctx, stop := context.WithCancel(t.Context())
				var serving sync.WaitGroup
				serving.Go(func() {
					for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
						context.AfterFunc(ctx, func() { conn.Close() })
						serving.Go(func() { server.serve(conn) })
					}
				})
				client, err := NewHTTP(Route{})
				if err != nil {
					t.Fatal(err)
				}
				transport := client.Transport.(Once)
				transport.Protocols = new(http.Protocols)
				transport.Protocols.SetUnencryptedHTTP2(true)
				err = send(t, client, method, "http://"+listener.Addr().String()+"/work", body, "")
				client.CloseIdleConnections()
				listener.Close()
				stop()
				serving.Wait()
				if n := server.requests.Load(); repeated && (err != nil || n != 2) || !repeated && (err == nil || n != 1) {
					t.Errorf("code %d, %s with %d bytes: %d requests, %v", code, method, len(body), n, err)
				}
			}
		}
	}
}

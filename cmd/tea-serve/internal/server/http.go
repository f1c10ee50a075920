package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/the-edge-agent/tea/cmd/internal/webguard"
)

const (
	// maxRequests is how many requests are served concurrently, open streams
	// included.
	maxRequests = 4096
	// maxHeader is the size of the header of a request.
	maxHeader = 64 << 10
	// readHeaderTimeout is how long a client has to send it.
	readHeaderTimeout = 10 * time.Second
)

// serveHTTP serves the API until the service stops.
func (s *server) serveHTTP(listener net.Listener) (err error) {
	a := s.access
	guard := webguard.Guard(refuse)
	routes, _ := s.routes(a)
	h := guard.Bounded(routes, maxRequests)
	h = guard.SameOrigin(h)
	if a.loopback {
		h = guard.LocalHost(h, s.flags.AllowHost...)
	}
	web := &http.Server{
		Protocols: new(http.Protocols),
		Handler:   h, ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: time.Minute, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(s.svc.Log.Handler(), slog.LevelInfo),
	}
	web.Protocols.SetHTTP1(true) // ServeTLS would offer HTTP/2 even if it is not linked
	s.svc.Announce("serving at " + urlOf(listener, a.tls != nil))
	s.notify(daemon.SdNotifyReady)
	failed := make(chan error, 1)
	go func() {
		if a.tls == nil {
			failed <- web.Serve(listener)
			return
		}
		web.TLSConfig = a.tls.serving()
		failed <- web.ServeTLS(listener, "", "")
	}()
	select {
	case err = <-failed:
	case <-s.svc.Context.Done(): // requests are refused while the runs end
		s.svc.Log.Info("the server is stopping")
		s.notify(daemon.SdNotifyStopping)
	}
	s.close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if shut := web.Shutdown(ctx); shut != nil {
		_ = web.Close() // for clients that do not read
	}
	return err
}

// listen listens on HOST:PORT or unix:PATH.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	path, isSocket := strings.CutPrefix(addr, "unix:")
	if !isSocket {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
		if err != nil {
			return nil, fmt.Errorf("--listen %s: %w", addr, err)
		}
		return l, nil
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == os.ModeSocket {
		if conn, err := new(net.Dialer).DialContext(ctx, "unix", path); err == nil {
			return nil, errors.Join(fmt.Errorf("--listen %s: another process listens there", addr), conn.Close())
		}
		if err := os.Remove(path); err != nil { // a killed server left it
			return nil, fmt.Errorf("--listen %s: %w", addr, err)
		}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("--listen %s: %w", addr, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("--listen %s: %w", addr, err), l.Close())
	}
	return l, nil
}

func urlOf(l net.Listener, encrypted bool) string {
	if l.Addr().Network() == "unix" {
		return "unix:" + l.Addr().String()
	}
	if encrypted {
		return "https://" + l.Addr().String()
	}
	return "http://" + l.Addr().String()
}

package driver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"go.temporal.io/sdk/converter"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/cmd/internal/webguard"
)

// uiOrigins are the origins of the user interface of a development server and of a
// self-hosted one.
var uiOrigins = []string{"http://localhost:8233", "http://127.0.0.1:8233", "http://localhost:8080", "http://127.0.0.1:8080"}

// maxCodecRequest bounds a request to the codec server.
const maxCodecRequest = 64 << 20

// codecHandler returns the handler of the codec server. It decrypts values for
// Temporal's user interface and command line.
func codecHandler(keys string, values store, origins []string) (http.Handler, error) {
	keyring, err := newCodec(keys)
	if err != nil {
		return nil, err
	}
	codec, err := converter.NewPayloadHTTPHandler(converter.PayloadHTTPHandlerOptions{PreStorageCodecs: []converter.PayloadCodec{keyring}, ExternalStorage: storage(values)})
	if err != nil {
		return nil, fmt.Errorf("start the codec server: %w", err)
	}
	guard := webguard.Guard(func(w http.ResponseWriter, text string, status int) { http.Error(w, text, status) })
	limited := guard.LocalHost(guard.Bounded(guard.Read(codec, maxCodecRequest), 16))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A browser sends its origin; the command line does not.
		if origin := r.Header.Get("Origin"); origin != "" {
			if !slices.Contains(origins, origin) {
				guard(w, "requests from the pages of other origins are refused; --codec-origin allows one", http.StatusForbidden)
				return
			}
			h := w.Header()
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Allow-Headers", "Authorization,Content-Type,X-Namespace")
			h.Set("Access-Control-Allow-Methods", "POST")
			h.Set("Vary", "Origin")
			if r.Method == http.MethodOptions {
				return
			}
		}
		limited.ServeHTTP(w, r)
	}), nil
}

// serveCodec starts the codec server.
func (f *workerCmd) serveCodec(s *teacmd.Service, values store) (stop func(), err error) {
	if !webguard.Loopback(f.Codec) {
		return nil, fmt.Errorf("--codec %s: anyone who reaches the codec server can read all values; use an address of this machine, such as 127.0.0.1:8234, and a proxy that authenticates", f.Codec)
	}
	origins := f.CodecOrigin
	if len(origins) == 0 {
		origins = uiOrigins
	}
	handler, err := codecHandler(f.Keys, values, origins)
	if err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(s.Context, "tcp", f.Codec)
	if err != nil {
		return nil, fmt.Errorf("start the codec server: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.Log.Error("the codec server ended", "error", err)
		}
	}()
	s.Announce("codec server at http://" + listener.Addr().String())
	return func() { _ = server.Shutdown(context.WithoutCancel(s.Context)) }, nil
}

package gcs_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/objstore"
	"github.com/the-edge-agent/tea/objstore/gcs"
	"github.com/the-edge-agent/tea/objstore/objtest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	objtest.Run(t, objtest.GCS(t), gcs.Scheme())
}

func TestFaults(t *testing.T) {
	t.Parallel()
	objtest.Faults(t, objtest.GCS(t), gcs.Scheme())
}

// An object that is stored compressed is read as it is stored: the service would unpack
// it otherwise, and does not say how large it is then.
func TestCompressedObjects(t *testing.T) {
	t.Parallel()
	s := objtest.GCS(t)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte("content"))
	_ = z.Close()
	var body bytes.Buffer
	parts := multipart.NewWriter(&body)
	w, _ := parts.CreatePart(textproto.MIMEHeader{"Content-Type": {"application/json"}})
	_, _ = io.WriteString(w, `{"name": "a", "contentEncoding": "gzip"}`)
	w, _ = parts.CreatePart(textproto.MIMEHeader{"Content-Type": {"text/plain"}})
	_, _ = w.Write(packed.Bytes())
	_ = parts.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.Settings.Endpoint+"/upload/storage/v1/b/"+strings.TrimPrefix(s.Address, "gs://")+"/o?uploadType=multipart", &body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "multipart/related; boundary="+parts.Boundary())
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status, err)
	}
	if got := objtest.Content(t, s.Open(t, nil, gcs.Scheme()), "a", 0, objstore.All); got != packed.String() {
		t.Errorf("%q was read, want the %d bytes that are stored", got, packed.Len())
	}
}

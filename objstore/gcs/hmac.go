package gcs

import (
	"cmp"
	"context"
	"io"
	"os"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/objstore"
	"github.com/the-edge-agent/tea/objstore/s3"
)

// hmacKeys returns the settings with the HMAC keys of Google Cloud, if they exist and
// there are no other credentials for it.
func hmacKeys(s objstore.Settings) (objstore.Settings, bool) {
	if s.AccessKeyID == "" && (s.MetadataServer || credentialsFile()) || s.Credentials != "" {
		return s, false
	}
	if s.AccessKeyID == "" {
		s.AccessKeyID, s.SecretAccessKey = os.Getenv("GCS_ACCESS_KEY_ID"), os.Getenv("GCS_SECRET_ACCESS_KEY")
	}
	return s, s.AccessKeyID != "" && s.SecretAccessKey != ""
}

// hmacDriver uses the protocol of S3, which HMAC keys require.
type hmacDriver struct{ objstore.Driver }

func connectHMAC(ctx context.Context, t objstore.Target) (objstore.Driver, error) {
	t.Settings.Endpoint, t.Settings.Region = cmp.Or(t.Settings.Endpoint, "https://storage.googleapis.com"), cmp.Or(t.Settings.Region, "auto")
	d, err := s3.Scheme().Connect(ctx, t)
	if err != nil {
		return nil, err
	}
	return hmacDriver{d}, nil
}

// Put refuses conditions, which the service ignores in this protocol.
func (d hmacDriver) Put(ctx context.Context, key string, r io.Reader, o objstore.PutOptions) (objstore.Object, error) {
	if o.Match != "" {
		return objstore.Object{}, tea.Errorf(tea.ValidationError, "Google Cloud Storage ignores conditions of a write with HMAC keys; set credentials to the JSON of a service account, or GOOGLE_APPLICATION_CREDENTIALS to its file")
	}
	return d.Driver.Put(ctx, key, r, o)
}

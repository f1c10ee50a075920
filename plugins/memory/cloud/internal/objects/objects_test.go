package objects_test

import (
	"path"
	"testing"

	"github.com/the-edge-agent/tea/objstore"
	"github.com/the-edge-agent/tea/objstore/azure"
	"github.com/the-edge-agent/tea/objstore/gcs"
	"github.com/the-edge-agent/tea/objstore/objtest"
	"github.com/the-edge-agent/tea/objstore/s3"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/objects"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

func conformance(t *testing.T, server *objtest.Server, scheme objstore.Scheme) {
	t.Helper()
	storetest.BlobStorage(t, func(t *testing.T) store.BlobStorage {
		t.Helper()
		below := *server
		below.Address += "/" + path.Base(t.Name())
		return objects.New(below.Open(t, nil, scheme))
	})
}

func TestS3(t *testing.T) {
	t.Parallel()
	conformance(t, objtest.S3(t), s3.Scheme())
}

func TestGoogle(t *testing.T) {
	t.Parallel()
	conformance(t, objtest.GCS(t), gcs.Scheme())
}

func TestAzure(t *testing.T) {
	t.Parallel()
	conformance(t, objtest.Azure(t), azure.Scheme())
}

package s3_test

import (
	"testing"

	"github.com/the-edge-agent/tea/objstore/objtest"
	"github.com/the-edge-agent/tea/objstore/s3"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	objtest.Run(t, objtest.S3(t), s3.Scheme())
}

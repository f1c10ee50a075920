// Package s3 implements the protocol of Amazon S3, which many services support; it is
// the scheme s3:// of package objstore.
//
// Unset settings come from the variables AWS_* and, for keys, from ~/.aws/credentials
// with its profiles, sign-ons and processes, then from the role that the variables
// define. The role of the machine is used only with the setting metadata_server.
package s3

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/the-edge-agent/tea/objstore"
)

// Scheme returns the scheme s3://.
func Scheme() objstore.Scheme {
	return objstore.Scheme{Names: []string{"s3"}, Env: environment(), Connect: connect}
}

func environment() []string {
	return []string{
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE",
		"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ROLE_ARN", "AWS_ROLE_SESSION_NAME", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
		"HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR",
	}
}

const (
	// partSize is the size of a part of a large upload, and the memory of an upload. S3
	// accepts 10,000 parts: the largest object has 80 GB.
	partSize = 8 << 20
	// copyLimit is the maximum size that S3 copies in one request.
	copyLimit = 5 << 30
	pageSize  = 1000
)

type driver struct {
	client *minio.Client
	core   minio.Core
	bucket string
}

func connect(_ context.Context, t objstore.Target) (objstore.Driver, error) {
	endpoint, region := t.Settings.Endpoint, first(t.Settings.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	if endpoint == "" {
		endpoint = first(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
	}
	lookup := minio.BucketLookupAuto
	if endpoint == "" {
		endpoint = "https://s3.amazonaws.com" // the client finds the region of the bucket
	} else {
		lookup, region = minio.BucketLookupPath, first(region, "us-east-1")
	}
	address, err := objstore.Service(endpoint)
	if err != nil {
		return nil, err
	}
	options := &minio.Options{
		Creds: credentialsOf(t.Settings), Secure: address.Scheme == "https", Region: region, Transport: t.HTTP.Transport, BucketLookup: lookup, MaxRetries: t.Settings.Tries(),
	}
	client, err := minio.New(address.Host, options)
	if err != nil {
		return nil, err
	}
	return &driver{client: client, core: minio.Core{Client: client}, bucket: t.Bucket}, nil
}

func first(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

func (d *driver) Put(ctx context.Context, key string, r io.Reader, o objstore.PutOptions) (objstore.Object, error) {
	options := minio.PutObjectOptions{ContentType: o.ContentType, UserMetadata: o.Metadata, PartSize: partSize, SendContentMd5: true}
	switch o.Match {
	case "":
	case objstore.Absent:
		options.SetMatchETagExcept("*")
	default:
		options.SetMatchETag(o.Match)
	}
	// An object of one part needs one request; the client would make three.
	single := int64(partSize)
	if o.Match != "" {
		single = objstore.MaxConditional + 1
	}
	var part bytes.Buffer
	n, err := io.CopyN(&part, r, single)
	if err != nil && err != io.EOF {
		return objstore.Object{}, err
	}
	data, size := io.Reader(bytes.NewReader(part.Bytes())), n
	if err == nil {
		data, size = io.MultiReader(&part, r), -1
	}
	options.DisableMultipart = size >= 0
	info, err := d.client.PutObject(ctx, d.bucket, key, data, size, options)
	return uploaded(key, info), err
}

func uploaded(key string, info minio.UploadInfo) objstore.Object {
	o := objstore.Object{Name: key, Version: info.ETag, Modified: info.LastModified}
	if o.Modified.IsZero() {
		o.Modified = time.Now()
	}
	return o
}

func (d *driver) Read(ctx context.Context, key string, offset, length int64, version string) (objstore.Object, io.ReadCloser, error) {
	var options minio.GetObjectOptions
	options.Set("X-Amz-Checksum-Mode", "ENABLED")
	if version != "" {
		if err := options.SetMatchETag(version); err != nil {
			return objstore.Object{}, nil, err
		}
	}
	switch {
	case length > 0:
		if err := options.SetRange(offset, offset+length-1); err != nil {
			return objstore.Object{}, nil, err
		}
	case offset > 0:
		if err := options.SetRange(offset, 0); err != nil {
			return objstore.Object{}, nil, err
		}
	}
	body, info, header, err := d.core.GetObject(ctx, d.bucket, key, options)
	if err != nil {
		return objstore.Object{}, nil, err
	}
	o := toObject(info)
	if part := header.Get("Content-Range"); part != "" {
		if o.Size, err = objstore.TotalSize(part); err != nil {
			return objstore.Object{}, nil, errors.Join(err, body.Close())
		}
	}
	return o, body, nil
}

func (d *driver) Stat(ctx context.Context, key string) (objstore.Object, error) {
	info, err := d.client.StatObject(ctx, d.bucket, key, minio.StatObjectOptions{})
	return toObject(info), err
}

func toObject(info minio.ObjectInfo) objstore.Object {
	o := objstore.Object{
		Name: info.Key, Size: info.Size, Modified: info.LastModified, Version: strings.Trim(info.ETag, `"`), ContentType: info.ContentType, Metadata: map[string]string{},
	}
	for name, value := range info.UserMetadata {
		o.Metadata[strings.ToLower(name)] = value
	}
	if info.ChecksumMode != minio.ChecksumFullObjectMode.String() {
		return o
	}
	for _, sum := range []struct{ kind, value string }{{"crc32c", info.ChecksumCRC32C}, {"crc32", info.ChecksumCRC32}, {"crc64nvme", info.ChecksumCRC64NVME}, {"sha256", info.ChecksumSHA256}} {
		if sum.value != "" {
			o.Checksum = sum.kind + ":" + sum.value
		}
	}
	return o
}

func (d *driver) Delete(ctx context.Context, key string) error {
	return d.client.RemoveObject(ctx, d.bucket, key, minio.RemoveObjectOptions{})
}

func (d *driver) Copy(ctx context.Context, from, to string) error {
	source := minio.CopySrcOptions{Bucket: d.bucket, Object: from}
	dest := minio.CopyDestOptions{Bucket: d.bucket, Object: to}
	_, err := d.client.CopyObject(ctx, dest, source)
	if err == nil || d.Fault(err).Code != "InvalidRequest" && d.Fault(err).Code != "EntityTooLarge" {
		return err
	}
	if info, statErr := d.Stat(ctx, from); statErr != nil || info.Size <= copyLimit {
		return err
	}
	_, err = d.client.ComposeObject(ctx, dest, source) // in parts
	return err
}

func (d *driver) List(ctx context.Context, prefix, token string) (page []objstore.Object, next string, err error) {
	for info := range d.client.ListObjectsIter(ctx, d.bucket, minio.ListObjectsOptions{Prefix: prefix, StartAfter: token, Recursive: true, MaxKeys: pageSize}) {
		if info.Err != nil {
			return nil, "", info.Err
		}
		if page = append(page, toObject(info)); len(page) == pageSize {
			return page, info.Key, nil
		}
	}
	return page, "", ctx.Err()
}

func (d *driver) Sign(ctx context.Context, method, key string, expires time.Duration) (string, error) {
	u, err := d.client.Presign(ctx, method, d.bucket, key, expires, url.Values{})
	if err != nil {
		return "", err
	}
	return u.String(), nil
}

func (d *driver) Exists(ctx context.Context) error {
	there, err := d.client.BucketExists(ctx, d.bucket)
	if err == nil && !there {
		err = minio.ErrorResponse{StatusCode: http.StatusNotFound, Code: "NoSuchBucket"}
	}
	return err
}

func (d *driver) Fault(err error) objstore.Fault {
	var said minio.ErrorResponse
	if !errors.As(err, &said) || said.StatusCode == 0 && said.Code == "" {
		return objstore.Fault{}
	}
	f := objstore.Fault{Status: said.StatusCode, Code: said.Code, Message: said.Message, Region: said.Region}
	if f.Status == http.StatusNotFound && f.Code == "" {
		f.Code = "NoSuchKey"
	}
	return f
}

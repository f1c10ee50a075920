// Package azure implements Azure Blob Storage, the schemes azblob:// and az:// of
// package objstore. A bucket is a container.
//
// Unset settings come from AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_ACCOUNT,
// AZURE_STORAGE_KEY and AZURE_STORAGE_SAS_TOKEN. Without a key or signature, a
// service principal or workload in the environment or the login of az is used. The
// identity of the machine is used only with the setting metadata_server.
package azure

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // Azure checks what it receives with it
	"encoding/base64"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
	"github.com/the-edge-agent/tea/sdk/x/httpstatus"

	"github.com/the-edge-agent/tea/objstore"
)

// Scheme returns the schemes azblob:// and az://.
func Scheme() objstore.Scheme {
	return objstore.Scheme{Names: []string{"azblob", "az"}, Env: environment(), Connect: connect}
}

func environment() []string {
	return []string{
		"AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_AUTHORITY_HOST", "AZURE_CONFIG_DIR",
		"AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PATH", "AZURE_CLIENT_CERTIFICATE_PASSWORD", "AZURE_FEDERATED_TOKEN_FILE",
		"IDENTITY_ENDPOINT", "IDENTITY_HEADER", "IDENTITY_SERVER_THUMBPRINT", "MSI_ENDPOINT", "MSI_SECRET",
		"HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR",
	}
}

const (
	// partSize is the size of a part of a large upload. Two parts are in memory. Azure
	// accepts 50,000 parts.
	partSize = 8 << 20
	pageSize = 1000
	// skew is the clock difference that Azure accepts.
	skew = 10 * time.Minute
)

type driver struct {
	container *container.Client
	signs     bool      // has the account's key
	expires   time.Time // of the signature; zero = unknown
}

// account is the account in the settings and the environment.
type account struct{ name, key, sas, endpoint string }

func accountOf(s objstore.Settings) account {
	a := account{name: s.Account, key: s.AccountKey, sas: s.SASToken, endpoint: s.Endpoint}
	if a.name == "" && a.key == "" && a.sas == "" {
		a = fromConnection(os.Getenv("AZURE_STORAGE_CONNECTION_STRING"), a)
	}
	if a.name == "" {
		a.name = os.Getenv("AZURE_STORAGE_ACCOUNT")
	}
	if a.key == "" && a.sas == "" {
		a.key, a.sas = os.Getenv("AZURE_STORAGE_KEY"), os.Getenv("AZURE_STORAGE_SAS_TOKEN")
	}
	if a.endpoint == "" && a.name != "" {
		a.endpoint = "https://" + a.name + ".blob.core.windows.net"
	}
	a.endpoint, a.sas = strings.TrimSuffix(a.endpoint, "/"), strings.TrimPrefix(a.sas, "?")
	return a
}

// fromConnection adds the parts of a connection string.
func fromConnection(text string, a account) account {
	parts := map[string]string{}
	for part := range strings.SplitSeq(text, ";") {
		name, value, _ := strings.Cut(part, "=")
		parts[strings.ToLower(strings.TrimSpace(name))] = value
	}
	a.name, a.key, a.sas = parts["accountname"], parts["accountkey"], parts["sharedaccesssignature"]
	if a.endpoint == "" {
		a.endpoint = parts["blobendpoint"]
	}
	if suffix := parts["endpointsuffix"]; a.endpoint == "" && suffix != "" && a.name != "" {
		a.endpoint = "https://" + a.name + ".blob." + suffix
	}
	return a
}

func connect(_ context.Context, t objstore.Target) (objstore.Driver, error) {
	a := accountOf(t.Settings)
	if a.endpoint == "" {
		return nil, tea.Errorf(tea.ValidationError, "the storage account of Azure is not set; set account or AZURE_STORAGE_ACCOUNT")
	}
	if _, err := objstore.Service(a.endpoint); err != nil {
		return nil, err
	}
	address := a.endpoint + "/" + t.Bucket
	core := azcore.ClientOptions{
		Transport: t.HTTP,
		Retry:     policy.RetryOptions{MaxRetries: int32(t.Settings.Tries() - 1), RetryDelay: 200 * time.Millisecond, MaxRetryDelay: 5 * time.Second}, //nolint:gosec // at most 20
		Telemetry: policy.TelemetryOptions{ApplicationID: "tea"},
	}
	if t.Settings.Tries() == 1 {
		core.Retry.MaxRetries = -1 // 0 is the client's default
	}
	options := &container.ClientOptions{ClientOptions: core}
	var client *container.Client
	var err error
	switch {
	case a.key != "":
		var credential *container.SharedKeyCredential
		if credential, err = container.NewSharedKeyCredential(a.name, a.key); err != nil {
			return nil, tea.Errorf(tea.ValidationError, "the key of the storage account is not valid Base64")
		}
		client, err = container.NewClientWithSharedKeyCredential(address, credential, options)
	case a.sas != "":
		client, err = container.NewClientWithNoCredential(address+"?"+a.sas, options)
	default:
		var credential azcore.TokenCredential
		if credential, err = identity(core, t.Settings.MetadataServer); err != nil {
			return nil, tea.Errorf(tea.ValidationError, "the variables of the environment are not a valid identity of Azure; check AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET")
		} else {
			client, err = container.NewClient(address, tokens{credential}, options)
		}
	}
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "the settings of Azure's storage are not valid")
	}
	d := &driver{container: client, signs: a.key != ""}
	if query, err := url.ParseQuery(a.sas); err == nil && a.key == "" {
		d.expires, _ = time.Parse(time.RFC3339, query.Get("se")) // otherwise Azure reports it
	}
	return d, nil
}

// identity returns the identity in the environment: a service principal, a workload, or
// the login of az. It uses the identity of the machine only if metadata is set, or if
// the environment names its service.
func identity(core azcore.ClientOptions, metadata bool) (azcore.TokenCredential, error) {
	var chain []azcore.TokenCredential
	if os.Getenv("AZURE_TENANT_ID") != "" && os.Getenv("AZURE_CLIENT_ID") != "" {
		var c azcore.TokenCredential
		var err error
		if os.Getenv("AZURE_FEDERATED_TOKEN_FILE") != "" {
			c, err = azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{ClientOptions: core})
		} else {
			c, err = azidentity.NewEnvironmentCredential(&azidentity.EnvironmentCredentialOptions{ClientOptions: core})
		}
		if err != nil {
			return nil, err
		}
		chain = append(chain, c)
	}
	if metadata || os.Getenv("IDENTITY_ENDPOINT") != "" || os.Getenv("MSI_ENDPOINT") != "" {
		o := &azidentity.ManagedIdentityCredentialOptions{ClientOptions: core}
		if id := os.Getenv("AZURE_CLIENT_ID"); id != "" {
			o.ID = azidentity.ClientID(id)
		}
		c, err := azidentity.NewManagedIdentityCredential(o)
		if err != nil {
			return nil, err
		}
		chain = append(chain, c)
	}
	cli, err := azidentity.NewAzureCLICredential(nil)
	if err != nil {
		return nil, err
	}
	return azidentity.NewChainedTokenCredential(append(chain, cli), nil)
}

// tokens explains why an identity has no token. Errors of the client may contain the
// request.
type tokens struct{ azcore.TokenCredential }

func (t tokens) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	token, err := t.TokenCredential.GetToken(ctx, o)
	if err == nil || ctx.Err() != nil {
		return token, err
	}
	var refused *azidentity.AuthenticationFailedError
	e := tea.Errorf(tea.PermissionDenied, "no credentials for Azure's storage were found; set account_key, sas_token, AZURE_STORAGE_CONNECTION_STRING, AZURE_TENANT_ID with AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, or metadata_server: true on a machine of Azure")
	switch {
	case !errors.As(err, &refused):
	case refused.RawResponse == nil:
		e = tea.Errorf(tea.ConnectionError, "the token for Azure's storage cannot be fetched: the service for it cannot be reached")
		e.Retryable = true
		return token, noToken{e}
	default:
		e = tea.Errorf(tea.PermissionDenied, "Azure does not accept the identity (HTTP %d); check AZURE_TENANT_ID, AZURE_CLIENT_ID and whether the secret has expired, or the identity that is assigned to the machine", refused.RawResponse.StatusCode)
	}
	e.Details = map[string]any{"reason": objstore.ReasonCredentials}
	return token, noToken{e}
}

// noToken is an error that the client does not retry.
type noToken struct{ error }

func (noToken) NonRetriable()   {}
func (e noToken) Unwrap() error { return e.error }

func (d *driver) Put(ctx context.Context, key string, r io.Reader, o objstore.PutOptions) (objstore.Object, error) {
	single := int64(partSize)
	if o.Match != "" {
		single = objstore.MaxConditional + 1
	}
	var part bytes.Buffer
	_, err := io.CopyN(&part, r, single)
	if err != nil && err != io.EOF {
		return objstore.Object{}, err
	}
	client := d.container.NewBlockBlobClient(key)
	headers := &blob.HTTPHeaders{}
	if o.ContentType != "" {
		headers.BlobContentType = &o.ContentType
	}
	if err == io.EOF { // a single request
		sum := md5.Sum(part.Bytes()) //nolint:gosec // see above
		headers.BlobContentMD5 = sum[:]
		written, err := client.Upload(ctx, closer{bytes.NewReader(part.Bytes())}, &blockblob.UploadOptions{
			HTTPHeaders: headers, Metadata: pointers(o.Metadata), AccessConditions: conditionsOf(o.Match), TransactionalValidation: blob.TransferValidationTypeMD5(sum[:]),
		})
		return uploaded(key, written.ETag, written.LastModified), err
	}
	written, err := client.UploadStream(ctx, io.MultiReader(&part, r), &blockblob.UploadStreamOptions{
		BlockSize: partSize, Concurrency: 1, HTTPHeaders: headers, Metadata: pointers(o.Metadata), TransactionalValidation: blob.TransferValidationTypeComputeCRC64(),
	})
	return uploaded(key, written.ETag, written.LastModified), err
}

type closer struct{ *bytes.Reader }

func (closer) Close() error { return nil }

func uploaded(key string, tag *azcore.ETag, at *time.Time) objstore.Object {
	o := objstore.Object{Name: key, Version: version(tag), Modified: time.Now()}
	if at != nil {
		o.Modified = *at
	}
	return o
}

func version(tag *azcore.ETag) string {
	if tag == nil {
		return ""
	}
	return strings.Trim(string(*tag), `"`)
}

func pointers(metadata map[string]string) map[string]*string {
	out := make(map[string]*string, len(metadata))
	for name, value := range metadata {
		out[name] = &value
	}
	return out
}

// conditionsOf returns the conditions for a version of an object.
func conditionsOf(match string) *blob.AccessConditions {
	tag := azcore.ETag(`"` + match + `"`)
	switch match {
	case "":
		return nil
	case objstore.Absent:
		tag = azcore.ETagAny
		return &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &tag}}
	}
	return &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: &tag}}
}

func (d *driver) Read(ctx context.Context, key string, offset, length int64, match string) (o objstore.Object, body io.ReadCloser, err error) {
	part := blob.HTTPRange{Offset: offset}
	if length > 0 {
		part.Count = length
	}
	found, err := d.container.NewBlobClient(key).DownloadStream(ctx, &blob.DownloadStreamOptions{Range: part, AccessConditions: conditionsOf(match)})
	if err != nil {
		return o, nil, err
	}
	o = objstore.Object{Name: key, Size: -1, Version: version(found.ETag), Metadata: values(found.Metadata)}
	set(&o.Size, found.ContentLength)
	set(&o.Modified, found.LastModified)
	set(&o.ContentType, found.ContentType)
	if found.ContentRange != nil {
		if o.Size, err = objstore.TotalSize(*found.ContentRange); err != nil {
			return o, nil, errors.Join(err, found.Body.Close())
		}
	}
	sum := found.ContentMD5
	if len(found.BlobContentMD5) > 0 {
		sum = found.BlobContentMD5
	}
	if len(sum) > 0 {
		o.Checksum = "md5:" + base64.StdEncoding.EncodeToString(sum)
	}
	return o, found.Body, nil
}

// set copies a value that a server may omit.
func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

func values(metadata map[string]*string) map[string]string {
	out := map[string]string{}
	for name, value := range metadata {
		if value != nil {
			out[strings.ToLower(name)] = *value
		}
	}
	return out
}

func (d *driver) Stat(ctx context.Context, key string) (o objstore.Object, err error) {
	found, err := d.container.NewBlobClient(key).GetProperties(ctx, nil)
	if err != nil {
		return o, err
	}
	o = objstore.Object{Name: key, Version: version(found.ETag), Metadata: values(found.Metadata)}
	set(&o.Size, found.ContentLength)
	set(&o.Modified, found.LastModified)
	set(&o.ContentType, found.ContentType)
	return o, nil
}

func (d *driver) Delete(ctx context.Context, key string) error {
	_, err := d.container.NewBlobClient(key).Delete(ctx, nil)
	return err
}

// copyWaits are the waits for a copy of a large object, which the service makes in the
// background.
var copyWaits = backoff.Policy{Base: 50 * time.Millisecond, Max: 5 * time.Second, Multiplier: 2}

func (d *driver) Copy(ctx context.Context, from, to string) error {
	target := d.container.NewBlobClient(to)
	started, err := target.StartCopyFromURL(ctx, d.container.NewBlobClient(from).URL(), nil)
	if err != nil {
		return err
	}
	status, id := started.CopyStatus, started.CopyID
	for attempt := 1; status != nil && *status == blob.CopyStatusTypePending; attempt++ {
		if err := backoff.Sleep(ctx, copyWaits.Wait(attempt)); err != nil {
			_, _ = target.AbortCopyFromURL(context.WithoutCancel(ctx), *id, nil)
			return err
		}
		now, err := target.GetProperties(ctx, nil)
		if err != nil {
			return err
		}
		status = now.CopyStatus
	}
	if status != nil && *status != blob.CopyStatusTypeSuccess {
		return tea.Errorf(tea.ConnectionError, "the copy is still pending (%s)", *status)
	}
	return nil
}

func (d *driver) List(ctx context.Context, prefix, token string) (page []objstore.Object, next string, err error) {
	size := int32(pageSize)
	options := &container.ListBlobsFlatOptions{MaxResults: &size, Prefix: &prefix}
	if token != "" {
		options.Marker = &token
	}
	found, err := d.container.NewListBlobsFlatPager(options).NextPage(ctx)
	if err != nil {
		return nil, "", err
	}
	for _, item := range found.Segment.BlobItems {
		o := objstore.Object{Name: *item.Name}
		if p := item.Properties; p != nil {
			o.Version = version(p.ETag)
			set(&o.Size, p.ContentLength)
			set(&o.Modified, p.LastModified)
			set(&o.ContentType, p.ContentType)
		}
		page = append(page, o)
	}
	set(&next, found.NextMarker)
	return page, next, nil
}

func (d *driver) Sign(_ context.Context, method, key string, expires time.Duration) (string, error) {
	if !d.signs {
		return "", tea.Errorf(tea.PermissionDenied, "signed addresses need the key of the storage account; set account_key")
	}
	permissions := sas.BlobPermissions{Read: true}
	if method == http.MethodPut {
		permissions = sas.BlobPermissions{Write: true, Create: true}
	}
	return d.container.NewBlobClient(key).GetSASURL(permissions, time.Now().Add(expires), nil)
}

func (d *driver) Exists(ctx context.Context) error {
	_, err := d.container.GetProperties(ctx, nil)
	return err
}

func (d *driver) Fault(err error) objstore.Fault {
	var said *azcore.ResponseError
	if !errors.As(err, &said) {
		return objstore.Fault{}
	}
	f := objstore.Fault{Status: said.StatusCode, Code: said.ErrorCode}
	if said.RawResponse == nil {
		return f
	}
	f.RetryAfter = httpstatus.RetryAfter(said.RawResponse.Header, time.Now())
	if at, err := http.ParseTime(said.RawResponse.Header.Get("Date")); err == nil && f.Status == http.StatusForbidden && time.Since(at).Abs() > skew {
		f.Code = "RequestTimeTooSkewed" // Azure says AuthenticationFailed
	} else if f.Status == http.StatusForbidden && !d.expires.IsZero() && time.Now().After(d.expires) {
		f.Code = "ExpiredToken" // likewise
	}
	var body struct {
		Message string `xml:"Message"`
	}
	if data, err := io.ReadAll(io.LimitReader(said.RawResponse.Body, 1<<16)); err == nil && xml.Unmarshal(data, &body) == nil {
		f.Message, _, _ = strings.Cut(body.Message, "\n")
	}
	return f
}

package objstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpstatus"
)

// The reasons in the details of an error, on which workflows can branch.
const (
	ReasonBucket      = "bucket_missing"
	ReasonRegion      = "wrong_region"
	ReasonClock       = "clock_skew"
	ReasonCredentials = "credentials"
	ReasonExpired     = "credentials_expired"
	ReasonQuota       = "quota"
)

// special is a failure with service-specific codes.
type special struct {
	reason string
	kind   tea.ErrorType
	hint   string
	codes  []string
}

var cases = []special{
	{ReasonClock, tea.PermissionDenied, "the clock of this device differs from the service's; set the clock", []string{"RequestTimeTooSkewed", "RequestExpired"}},
	{ReasonExpired, tea.PermissionDenied, "the credentials have expired; get new ones", []string{"ExpiredToken", "TokenRefreshRequired", "ExpiredTokenException"}},
	{
		ReasonCredentials, tea.PermissionDenied, "the service does not accept the credentials; check the keys", []string{
			"InvalidAccessKeyId", "XAdminUserNotFound", "SignatureDoesNotMatch", "InvalidToken", "InvalidSecurity", "AuthenticationFailed", "InvalidAuthenticationInfo", "authError", "MissingSecurityHeader", "NoCredentials",
		},
	},
	{ReasonRegion, tea.ValidationError, "the bucket is in another region; set region", []string{"AuthorizationHeaderMalformed", "PermanentRedirect", "IllegalLocationConstraintException", "InvalidRegion", "Redirect"}},
	{ReasonBucket, tea.NotFound, "the bucket does not exist; create it or correct its name", []string{"NoSuchBucket", "ContainerNotFound", "ContainerBeingDeleted", "AllAccessDisabled", "InvalidBucketName"}},
	{ReasonQuota, tea.ResourceExhausted, "the storage is full", []string{
		"QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "InsufficientStorage", "StorageFull", "EntityTooLarge", "RequestBodyTooLarge", "quotaExceeded", "AccountIsDisabled", "BlobTierInadequateForContentLength",
	}},
}

func isConflict(f Fault) bool {
	return f.Status == http.StatusPreconditionFailed || slices.Contains([]string{"PreconditionFailed", "ConditionNotMet", "BlobAlreadyExists", "ConditionalRequestConflict", "conditionNotMet"}, f.Code)
}

// failure converts an error of the driver.
func (b *Bucket) failure(ctx context.Context, verb, key string, err error) error {
	at := b.show(key)
	if ctx.Err() != nil {
		return fmt.Errorf("%s %s: %w", verb, at, ctx.Err())
	}
	f := b.driver.Fault(err)
	if _, special := caseOf(f); f.Status == http.StatusNotFound && !special {
		if bucketErr := b.check(ctx); bucketErr != nil {
			return b.failureOf(verb, at, bucketErr)
		}
		return fmt.Errorf("%s %s: %w", verb, at, ErrNotFound)
	}
	if isConflict(f) {
		return fmt.Errorf("%s %s: %w", verb, at, ErrConflict)
	}
	return b.failureOf(verb, at, err)
}

// check returns an error if the bucket does not exist. Services answer some requests
// for a missing bucket as if only the object were missing.
func (b *Bucket) check(ctx context.Context) error {
	if b.exists.Load() {
		return nil
	}
	err := b.driver.Exists(ctx)
	if err == nil || b.driver.Fault(err).Status == http.StatusForbidden { // it exists, but only its objects can be read
		b.exists.Store(true)
		return nil
	}
	return missing{err}
}

// missing is an error of Exists.
type missing struct{ error }

func (m missing) Unwrap() error { return m.error }

func caseOf(f Fault) (c special, ok bool) {
	for _, c := range cases {
		if slices.Contains(c.codes, f.Code) {
			return c, true
		}
	}
	return special{}, false
}

func (b *Bucket) failureOf(verb, at string, err error) error {
	var typed *tea.Error
	if errors.As(err, &typed) {
		return typed
	}
	f := b.driver.Fault(err)
	if f.Status == http.StatusNotFound && errors.As(err, new(missing)) {
		f.Code = "NoSuchBucket"
	}
	if f.Status == 0 && f.Code == "" {
		return b.connection(verb, at, err)
	}
	kind, retryable := httpstatus.ErrorType(f.Status)
	hint, reason := b.clean(f.Message), ""
	switch c, ok := caseOf(f); {
	case ok:
		kind, hint, reason, retryable = c.kind, c.hint, c.reason, false
		if reason == ReasonRegion && f.Region != "" {
			hint += " to " + f.Region
		}
	case f.Code == "SlowDown" || f.Code == "ServerBusy":
		kind, retryable = tea.RateLimited, true
	case f.Status == http.StatusInsufficientStorage || f.Status == http.StatusRequestEntityTooLarge:
		kind, hint, reason, retryable = tea.ResourceExhausted, "the storage is full", ReasonQuota, false
	}
	said := strings.TrimSpace(fmt.Sprintf("%s %s", status(f.Status), f.Code))
	out := tea.Errorf(kind, "%s %s: %s (%s)", verb, at, hint, said)
	out.Retryable, out.RetryAfter = retryable, f.RetryAfter
	out.Details = map[string]any{"status": f.Status}
	if f.Code != "" {
		out.Details["code"] = f.Code
	}
	if reason != "" {
		out.Details["reason"] = reason
	}
	return out
}

func status(code int) string {
	if code == 0 {
		return ""
	}
	return fmt.Sprintf("HTTP %d", code)
}

// connection is the error of a request without a response. It does not show the
// request's address, whose query may have a signature.
func (b *Bucket) connection(verb, at string, err error) error {
	var request *url.Error
	for errors.As(err, &request) {
		err = request.Err
	}
	kind := tea.ConnectionError
	var waited net.Error
	if errors.As(err, &waited) && waited.Timeout() {
		kind = tea.Timeout
	}
	text := b.clean(err.Error())
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		text = "the connection was closed in the middle of the answer"
	}
	out := tea.Errorf(kind, "%s %s: %s", verb, at, text)
	out.Retryable = true
	return out
}

const (
	maxMessage = 300
	minSecret  = 8
)

// clean shortens a service's message to one line without secrets.
func (b *Bucket) clean(text string) string {
	for _, secret := range b.secrets {
		if len(secret) < minSecret {
			continue // masking it would change other words
		}
		text = strings.ReplaceAll(text, secret, "***")
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "..."
	}
	if text == "" {
		text = "the service refused the request"
	}
	return text
}

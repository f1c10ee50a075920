package objstore

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Settings are the settings for reaching a service. Unset ones come from the
// environment and the vendor's other sources; see the packages of the drivers.
type Settings struct {
	Endpoint        string  `json:"endpoint,omitempty" doc:"address of a service other than the vendor's own, such as https://minio.example; http is allowed on this machine only"`
	Region          string  `json:"region,omitempty" doc:"S3: region of the bucket"`
	Profile         string  `json:"profile,omitempty" doc:"S3: profile in ~/.aws/credentials"`
	AccessKeyID     string  `json:"access_key_id,omitempty" doc:"S3: access key; Google Cloud: HMAC key"`
	SecretAccessKey string  `json:"secret_access_key,omitempty" secret:"true" doc:"S3: secret key; Google Cloud: secret of the HMAC key"`
	SessionToken    string  `json:"session_token,omitempty" secret:"true" doc:"S3: token of temporary credentials"`
	Credentials     string  `json:"credentials,omitempty" secret:"true" doc:"Google Cloud: credentials as JSON, such as the key of a service account"`
	Account         string  `json:"account,omitempty" doc:"Azure: name of the storage account"`
	AccountKey      string  `json:"account_key,omitempty" secret:"true" doc:"Azure: key of the storage account"`
	SASToken        string  `json:"sas_token,omitempty" secret:"true" doc:"Azure: shared access signature"`
	MetadataServer  bool    `json:"metadata_server,omitempty" doc:"take credentials from the metadata server of the machine, which is not asked otherwise"`
	CAFile          string  `json:"ca_file,omitempty" format:"path" doc:"file of certificates in PEM that are trusted in addition to the system's"`
	StallSeconds    float64 `json:"stall_timeout,omitempty" minimum:"0.1" maximum:"3600" doc:"seconds without a byte after which a connection is given up; default 30"`
	Attempts        int     `json:"attempts,omitempty" minimum:"1" maximum:"20" doc:"how often a request is tried; default 4"`
}

const (
	defaultStall    = 30 * time.Second
	defaultAttempts = 4
)

func (s Settings) stall() time.Duration {
	if s.StallSeconds == 0 {
		return defaultStall
	}
	return time.Duration(s.StallSeconds * float64(time.Second))
}

// Tries returns the number of attempts of a request.
func (s Settings) Tries() int {
	if s.Attempts == 0 {
		return defaultAttempts
	}
	return s.Attempts
}

// secrets returns the values that an error must not show.
func (s Settings) secrets() (all []string) {
	for _, secret := range []string{s.SecretAccessKey, s.SessionToken, s.Credentials, s.AccountKey, s.SASToken} {
		if secret != "" {
			all = append(all, secret)
		}
	}
	return all
}

// Service parses the address of a service: https, or http on this machine.
func Service(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "the endpoint of the object storage is not a valid URL")
	}
	switch {
	case u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, tea.Errorf(tea.ValidationError, "the endpoint of the object storage must be a URL such as https://host:port, without a user and a query")
	case u.Scheme == "https":
	case u.Scheme != "http":
		return nil, tea.Errorf(tea.ValidationError, "the endpoint of the object storage must begin with https://, not %s://", u.Scheme)
	case !onThisMachine(u.Hostname()):
		return nil, plaintext(u.Host)
	}
	return u, nil
}

func plaintext(host string) error {
	return tea.Errorf(tea.ValidationError, "http://%s is not encrypted; use https (http is allowed for addresses of this machine only)", host)
}

// onThisMachine reports whether a host is a loopback address.
func onThisMachine(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// Address is the address of a bucket, or of a part of it.
type Address struct {
	Scheme, Bucket string
	// Prefix begins the names of the objects. It is empty or ends with a slash.
	Prefix string
}

// IsAddress reports whether a text is an address with a scheme, such as s3://b, rather
// than a path. The scheme may be unsupported.
func IsAddress(text string) bool { return strings.Contains(text, "://") }

// ParseAddress parses an address such as s3://bucket/prefix.
func ParseAddress(text string) (Address, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return Address{}, invalid("an address of object storage looks like s3://bucket/prefix")
	}
	bucket, prefix, _ := strings.Cut(rest, "/")
	for _, r := range rest {
		if r <= ' ' || r == 0x7f || strings.ContainsRune(`?#%\@*"<>|`, r) {
			return Address{}, invalid("an address of object storage cannot contain %q; credentials and endpoints are settings", r)
		}
	}
	if bucket == "" || len(bucket) > 222 || strings.ContainsRune(bucket, ':') {
		return Address{}, invalid("%s://%s does not name a bucket; an address looks like s3://bucket/prefix", scheme, rest)
	}
	if prefix = strings.TrimSuffix(prefix, "/"); prefix != "" {
		if err := checkName(prefix); err != nil {
			return Address{}, err
		}
		prefix += "/"
	}
	return Address{Scheme: strings.ToLower(scheme), Bucket: bucket, Prefix: prefix}, nil
}

func (a Address) String() string { return a.Scheme + "://" + a.Bucket + "/" + a.Prefix }

// Contains reports whether b is a or below it.
func (a Address) Contains(b Address) bool {
	return a.Scheme == b.Scheme && a.Bucket == b.Bucket && strings.HasPrefix(b.Prefix, a.Prefix)
}

func invalid(format string, args ...any) error {
	return tea.Errorf(tea.ValidationError, "%s", fmt.Sprintf(format, args...))
}

const maxName = 1024

// checkName returns a validation_error for an invalid name of an object.
func checkName(name string) error {
	if name == "" || len(name) > maxName {
		return invalid("the name of an object must have 1 to %d bytes, not %d", maxName, len(name))
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." || strings.ContainsFunc(part, isInvalidRune) {
			return invalid("%q is not a valid name of an object", name)
		}
	}
	return nil
}

func isInvalidRune(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' || r == 0xFFFD }

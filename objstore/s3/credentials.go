package s3

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"slices"

	"github.com/minio/minio-go/v7/pkg/credentials"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/objstore"
)

// credentialsOf returns the keys in the settings, or the sources to search.
func credentialsOf(s objstore.Settings) *credentials.Credentials {
	if s.AccessKeyID != "" || s.SecretAccessKey != "" {
		return credentials.NewStaticV4(s.AccessKeyID, s.SecretAccessKey, s.SessionToken)
	}
	found := &sources{}
	if s.Profile == "" {
		found.files = append(found.files, &credentials.EnvAWS{})
	}
	found.files = append(found.files, &credentials.FileAWSCredentials{Profile: s.Profile})
	if s.Profile == "" && (s.MetadataServer || roleInEnvironment()) {
		found.role = &credentials.IAM{}
	}
	return credentials.New(found)
}

// roleInEnvironment reports whether the environment defines the role of a container or
// of a web identity.
func roleInEnvironment() bool {
	return slices.ContainsFunc([]string{"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"}, func(name string) bool { return os.Getenv(name) != "" })
}

// sources are the places to search for keys. The client's own chain hides why a service
// has none, and sends unsigned requests.
type sources struct {
	files []credentials.Provider // and variables
	role  *credentials.IAM       // nil = not used

	used credentials.Provider
}

func (s *sources) RetrieveWithCredContext(cc *credentials.CredContext) (credentials.Value, error) {
	for _, p := range s.files {
		if v, err := p.RetrieveWithCredContext(cc); err == nil && v.AccessKeyID != "" {
			s.used = p
			return v, nil
		}
	}
	if s.role == nil {
		return credentials.Value{}, refused("no credentials for S3 were found; set access_key_id and secret_access_key, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, ~/.aws/credentials, or metadata_server: true", objstore.ReasonCredentials)
	}
	v, err := s.role.RetrieveWithCredContext(cc)
	if err == nil && v.AccessKeyID == "" {
		err = errNoRole
	}
	if err != nil {
		return credentials.Value{}, roleError(err)
	}
	s.used = s.role
	return v, nil
}

func (s *sources) Retrieve() (credentials.Value, error) { return s.RetrieveWithCredContext(nil) }

func (s *sources) IsExpired() bool { return s.used == nil || s.used.IsExpired() }

var errNoRole = errors.New("no role")

// roleError explains why the role service has no keys. Its response may contain a
// token.
func roleError(err error) error {
	var said credentials.ErrorResponse
	var waited net.Error
	switch {
	case errors.As(err, &said) && said.STSError.Code == "ExpiredTokenException":
		return refused("the token in the file of AWS_WEB_IDENTITY_TOKEN_FILE has expired; write a new one to the file", objstore.ReasonExpired)
	case errors.As(err, &said):
		return refused("AWS does not accept the web identity ("+said.STSError.Code+"); check AWS_ROLE_ARN, its trust policy and the file of AWS_WEB_IDENTITY_TOKEN_FILE", objstore.ReasonCredentials)
	case errors.As(err, new(*fs.PathError)):
		return refused("the file of a token for AWS cannot be read; check AWS_WEB_IDENTITY_TOKEN_FILE and AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", objstore.ReasonCredentials)
	case errors.As(err, &waited):
		e := tea.Errorf(tea.ConnectionError, "the service for credentials of AWS cannot be reached")
		e.Retryable = true
		return e
	}
	return refused("this machine or container has no valid role of AWS; assign one to it, or set access_key_id and secret_access_key", objstore.ReasonCredentials)
}

func refused(text, reason string) error {
	e := tea.Errorf(tea.PermissionDenied, "%s", text)
	e.Details = map[string]any{"reason": reason}
	return e
}

package bundles

import (
	"io"
	"path/filepath"

	"github.com/the-edge-agent/tea/host/internal/bundle"
	"github.com/the-edge-agent/tea/host/internal/lockfile"
	"github.com/the-edge-agent/tea/host/internal/store"
)

type (
	// Contents is what [Pack] puts into a bundle.
	Contents = bundle.Contents
	// Bundle is an open bundle file.
	Bundle = bundle.Bundle
	// Index describes the contents of a bundle.
	Index = bundle.Index
	// Key is a public key of minisign.
	Key = bundle.Key
	// SecretKey signs bundles.
	SecretKey = bundle.SecretKey
	// Signature is a signature of minisign.
	Signature = bundle.Signature

	// Store holds the bundles that are installed for a user.
	Store = store.Store
	// Entry is an installed version of a plugin.
	Entry = store.Entry
	// Installed is an installed plugin with its versions.
	Installed = store.Installed
	// NotInstalledError is the error of a plugin that is not installed.
	NotInstalledError = store.NotInstalledError

	// Lock is the content of a lock file.
	Lock = lockfile.Lock
	// Refusal is the error of a plugin that a lock does not allow.
	Refusal = lockfile.Refusal
)

// The names of files.
const (
	Suffix          = bundle.Suffix
	SignatureSuffix = bundle.SignatureSuffix
	LockName        = lockfile.Name
	AnyPlatform     = bundle.AnyPlatform
)

// ErrUnsigned is the error of [ReadSignature] for a bundle without a signature.
var ErrUnsigned = bundle.ErrUnsigned

// Pack writes a bundle. The same contents make the same bytes.
func Pack(w io.Writer, c Contents) (*Index, error) { return bundle.Write(w, c) }

// Open opens a bundle file and checks its integrity. The caller closes it.
func Open(path string) (*Bundle, error) { return bundle.Open(path) }

// PlatformOf returns the platform for which a binary was built.
func PlatformOf(path string) (string, error) { return bundle.PlatformOf(path) }

// ParseKey reads a public key: the text itself ("RW...") or a file with it.
func ParseKey(given string) (Key, error) { return bundle.ParseKey(given) }

// GenerateKey returns a new key.
func GenerateKey() (SecretKey, error) { return bundle.GenerateKey() }

// ParseSecretKey decodes the file of a secret key. It calls password only if
// the key is encrypted.
func ParseSecretKey(data []byte, password func() (string, error)) (SecretKey, error) {
	return bundle.ParseSecretKey(data, password)
}

// ReadSignature reads the signature file of a bundle.
func ReadSignature(path string) (Signature, error) { return bundle.ReadSignature(path) }

// ReadLock reads a lock file. The error is fs.ErrNotExist if there is none.
func ReadLock(path string) (*Lock, error) { return lockfile.Read(path) }

// UserStore returns the store of the user, $XDG_DATA_HOME/tea; nil if there is
// no home directory. getenv is os.Getenv outside tests.
func UserStore(getenv func(string) string) *Store {
	data := home(getenv, "XDG_DATA_HOME", filepath.Join(".local", "share"))
	if data == "" {
		return nil
	}
	return store.At(filepath.Join(data, "tea"))
}

func home(getenv func(string) string, name, underHome string) string {
	if dir := getenv(name); filepath.IsAbs(dir) {
		return dir
	}
	if home := getenv("HOME"); home != "" {
		return filepath.Join(home, underHome)
	}
	return ""
}

// Command sign signs a file of a release and writes the signature to FILE.minisig.
//
//	go run ./packaging/sign KEY FILE COMMENT
//
// KEY is a file with a secret key, as `tea plugin keygen` and minisign write it.
// TEA_KEY_PASSWORD is its password, if it has one. COMMENT is the trusted comment of the
// signature.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"aead.dev/minisign"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: sign KEY FILE COMMENT")
		os.Exit(2)
	}
	if err := sign(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "sign:", err)
		os.Exit(1)
	}
}

func sign(keyFile, path, comment string) error {
	data, err := os.ReadFile(keyFile)
	if err != nil {
		return err
	}
	var key minisign.PrivateKey
	if minisign.IsEncrypted(data) {
		key, err = minisign.DecryptKey(os.Getenv("TEA_KEY_PASSWORD"), data)
	} else {
		err = key.UnmarshalText(bytes.TrimSpace(data))
	}
	if err != nil {
		return fmt.Errorf("%s is not a secret key, or TEA_KEY_PASSWORD is wrong: %w", keyFile, err)
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	hashed := minisign.NewReader(file)
	if _, err := io.Copy(io.Discard, hashed); err != nil {
		return err
	}
	text := hashed.SignWithComments(key, comment, fmt.Sprintf("signature of a tea release by key %016X", key.ID()))
	return os.WriteFile(path+".minisig", text, 0o644)
}

package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const secretLen = 32 // bytes

// openSecret returns the secret that signs the submit tokens: from the file if
// one is named, which is made if it is missing, else a new one.
func openSecret(file string, warnings io.Writer) ([]byte, error) {
	if file == "" {
		fmt.Fprintln(warnings, "WARNING: the signing secret is a demo secret, made just now: pages opened before a "+
			"restart cannot submit after it. -secret-file FILE keeps one.")
		return newSecret(), nil
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return makeSecret(file)
	}
	if err != nil {
		return nil, fmt.Errorf("secret file: %w", err)
	}
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o077 != 0 {
		fmt.Fprintf(warnings, "WARNING: others can read %s; chmod 600 it.\n", file)
	}
	secret, err := hex.DecodeString(string(bytes.TrimSpace(text)))
	if err != nil || len(secret) < secretLen {
		return nil, fmt.Errorf("secret file %s: want at least %d hex digits; remove it to get a new one",
			file, 2*secretLen)
	}
	return secret, nil
}

// makeSecret writes a new secret to file. Of two shops that start at once, one
// makes the file and the other one reads it.
func makeSecret(file string) ([]byte, error) {
	secret := newSecret()
	temp, err := os.CreateTemp(filepath.Dir(file), ".secret-*") // mode 0600
	if err != nil {
		return nil, fmt.Errorf("secret file: %w", err)
	}
	defer os.Remove(temp.Name())
	_, err = fmt.Fprintf(temp, "%x\n", secret)
	if err := errors.Join(err, temp.Close()); err != nil {
		return nil, fmt.Errorf("secret file: %w", err)
	}
	err = os.Link(temp.Name(), file) // fails if file exists, and never shows half a file
	if errors.Is(err, fs.ErrExist) {
		return openSecret(file, io.Discard)
	}
	if err != nil {
		return nil, fmt.Errorf("secret file: %w", err)
	}
	return secret, nil
}

func newSecret() []byte {
	secret := make([]byte, secretLen)
	_, _ = rand.Read(secret) // never fails: the runtime ends the program instead
	return secret
}

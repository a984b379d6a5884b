package published

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/secretfile"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/providers/publish"
)

// Key is a key that signs what is published of clusters.
type Key struct {
	signature.SecretKey
	file   string
	record string // file with what it signed
}

// ReadKey reads a key, and names the file with what it signed: unless given, the one beside it.
func ReadKey(file, record string) (k Key, err error) {
	if file == "" {
		return k, errors.New("--key FILE: want the secret signing key, as for florctl publish")
	}
	if err := secretfile.RefuseTree(file); err != nil {
		return k, err
	}
	secret, err := secretfile.ReadFile(file)
	if err != nil {
		return k, err
	}
	k.file, k.record = file, cmp.Or(record, file+".signed")
	if k.SecretKey, err = signature.LoadSecretKey(strings.TrimSpace(string(secret))); err != nil {
		return k, fmt.Errorf("%s: not a secret key as nix key generate-secret makes it: %w", file, err)
	}
	return k, nil
}

// CheckPinned returns an error where hosts do not verify with a key, by their own documents.
func (k Key) CheckPinned(cluster string, documents map[string][]document.Document) error {
	if err := publish.RejectUnpinned(documents, k.ToPublicKey()); err != nil {
		return fmt.Errorf("cluster %s: %s: %w", cluster, k.file, err)
	}
	return nil
}

// CheckOf returns an error where a cluster's trust.signingKeys lack a key: those would refuse what it signs.
func (k Key) CheckOf(t compile.Topology, those string) error {
	if public := k.ToPublicKey().String(); !slices.Contains(t.Trust.SigningKeys, public) {
		return fmt.Errorf("key %s: not among trust.signingKeys of cluster %s: %s would refuse what it signs", public, t.Name, those)
	}
	return nil
}

// SignJSON signs a value as it is encoded.
func (k Key) SignJSON(v any, text func(string) string) (encoded, signed string, err error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", "", err
	}
	sig, err := k.Sign(nil, text(string(b)))
	return string(b), sig.String(), err
}

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
	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/providers/archive"
)

// Key is an operator's private key for signing documents and revocation lists. It knows the file
// that records what it has signed.
type Key struct {
	signature.SecretKey
	file   string
	record string // file that records what the key signed

	only   string       // signature file to write instead of carrying out the act; empty for none
	others []signatures // signature files of other operators
}

// SignOnly returns a copy of the key for the option --sign-only, with which an operator only
// contributes a signature. An operation with that copy changes nothing, but writes its signature to
// the file. Another operator then passes the file to With. If file is empty, the copy is an
// ordinary key.
func (k Key) SignOnly(file string) Key {
	k.only = file
	return k
}

// With returns a copy of the key that adds the signatures of other operators to its own. The given
// files contain these signatures. The other operators wrote the files with --sign-only.
func (k Key) With(with []string) (Key, error) {
	for _, file := range with {
		s, err := readSignatures(file)
		if err != nil {
			return k, err
		}
		k.others = append(k.others, s)
	}
	return k, nil
}

// CheckAlone returns an error if the cluster requires signatures by more than one key. Call it
// before an operation that several operators cannot sign together. The first argument is a
// description of the operation, for the error.
func (k Key) CheckAlone(act string, by signers.Set) error {
	if by.Need() > 1 {
		return fmt.Errorf("%s: trust.threshold requires signatures by %d keys, but only one key signs", act, by.Need())
	}
	return nil
}

// ReadKey reads a signing key from a file in the format of nix key generate-secret. The argument
// record is the path of the file that records what the key has signed. If it is empty, that file is
// next to the key, with the suffix ".signed".
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

// CheckPinned returns an error if the manifest of any host does not contain the key in
// trust.signingKeys. That host would refuse signatures by the key.
func (k Key) CheckPinned(cluster string, documents map[string][]document.Document) error {
	if err := archive.RejectUnpinned(documents, k.ToPublicKey()); err != nil {
		return fmt.Errorf("cluster %s: %s: %w", cluster, k.file, err)
	}
	return nil
}

// CheckOf returns an error if the key is not among the trust.signingKeys of a cluster. The last
// argument is a word for the programs that would refuse signatures by the key. It becomes part of
// the error.
func (k Key) CheckOf(t compile.Topology, those string) error {
	if public := k.ToPublicKey().String(); !slices.Contains(t.Trust.SigningKeys, public) {
		return fmt.Errorf("key %s: not in trust.signingKeys of cluster %s: %s would refuse its signatures", public, t.Name, those)
	}
	return nil
}

// signJSON encodes a value in JSON and signs it for all operators of the round. The signed text is
// the result of the function text for the encoded value.
func (r *round) signJSON(what string, v any, text func(string) string) (encoded, signed string, err error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", "", err
	}
	signed, err = r.sign(what, text(string(b)))
	return string(b), signed, err
}

// SignJSON encodes v as JSON, and returns the JSON with a signature by this key alone. The function
// text returns the text to sign for that JSON.
func (k Key) SignJSON(v any, text func(string) string) (encoded, signed string, err error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", "", err
	}
	sig, err := k.Sign(nil, text(string(b)))
	return string(b), sig.String(), err
}

package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/signers"
)

// signedAhead is the largest time by which a serial may be ahead of the clock. A serial is the time
// of a commit. Hosts that accepted a serial in the far future would accept no other serial until
// that time.
const signedAhead = 10 * time.Minute

// SignedTree contains the signed documents of all hosts of a cluster, by the name of the host. All
// documents have the same serial.
type SignedTree map[string][]document.Document

// Sign signs the documents of a cluster with one key. It returns an error if the documents come
// from a flake with uncommitted changes, or if their serial, which is the time of the commit, is
// too far ahead of now.
func Sign(hosts map[string][]document.Document, key signature.SecretKey, now time.Time) (SignedTree, error) {
	return SignWith(hosts, now, func(_, text string) (string, error) {
		sig, err := key.Sign(nil, text)
		return sig.String(), err
	})
}

// SignWith is like Sign, but calls a function to sign the text of each document. The function
// returns one signature, or those of several keys. Its first argument is a description of the text
// for people.
func SignWith(hosts map[string][]document.Document, now time.Time, sign func(what, text string) (string, error)) (SignedTree, error) {
	tree := SignedTree{}
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		for _, d := range hosts[host] {
			if err := publishable(d.Envelope, now); err != nil {
				return nil, err
			}
			envelope, body, _ := d.Bytes()
			sig, err := sign(fmt.Sprintf("%s of %s, serial %d", d.Envelope.Kind, host, d.Envelope.Serial), document.SignedText(envelope))
			if err != nil {
				return nil, err
			}
			signed, err := document.Open(envelope, body, sig)
			if err != nil {
				return nil, err
			}
			tree[host] = append(tree[host], signed)
		}
	}
	return tree, nil
}

// Renumber returns a copy of a document with another serial and without a signature.
func Renumber(d document.Document, serial int64) (document.Document, error) {
	envelope, body, _ := d.Bytes()
	return edit(envelope, body, map[string]any{"serial": serial})
}

// NameClosures writes into each host's manifest which NixOS system the host runs: the Nix store
// path that closures contains for the host. It changes the documents in the map hosts. An unknown
// host or an invalid store path is an error.
func NameClosures(hosts map[string][]document.Document, closures map[string]string) error {
	for _, host := range slices.Sorted(maps.Keys(closures)) {
		if hosts[host] == nil {
			return fmt.Errorf("closure of %q: not a host of the cluster", host)
		}
		if err := document.CheckStorePath(closures[host]); err != nil {
			return fmt.Errorf("closure of %s: %w", host, err)
		}
		for i, d := range hosts[host] {
			if d.Envelope.Kind != document.DocManifest {
				continue
			}
			envelope, body, _ := d.Bytes()
			named, err := edit(envelope, body, map[string]any{"closure": closures[host]})
			if err != nil {
				return err
			}
			hosts[host][i] = named
		}
	}
	return nil
}

// edit returns an unsigned copy of a document in whose envelope some fields are changed.
func edit(envelope, body []byte, set map[string]any) (document.Document, error) {
	var fields map[string]any
	decoder := json.NewDecoder(bytes.NewReader(envelope))
	decoder.UseNumber()
	if err := decoder.Decode(&fields); err != nil {
		return document.Document{}, err
	}
	maps.Copy(fields, set)
	b, err := json.Marshal(fields)
	if err == nil {
		b, err = hostapi.Canonical(b) // the bytes that Nix makes
	}
	if err != nil {
		return document.Document{}, err
	}
	return document.Open(b, body, "")
}

// RejectUnpinned returns an error if the manifest of any host does not contain the key in
// trust.signingKeys. Such a host would refuse documents that the key has signed.
func RejectUnpinned(hosts map[string][]document.Document, key signature.PublicKey) error {
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		for _, d := range hosts[host] {
			if d.Envelope.Kind != document.DocManifest {
				continue
			}
			m := d.Manifest()
			if !slices.Contains(m.Trust.SigningKeys, key.String()) {
				return fmt.Errorf("key %s: not in trust.signingKeys, so host %s would refuse its signatures, want one of %s: "+
					"add the key there, and publish the change with one of these keys", key, host, strings.Join(m.Trust.SigningKeys, ", "))
			}
		}
	}
	return nil
}

func publishable(e document.Envelope, now time.Time) error {
	at := time.Unix(e.Serial, 0)
	if at.After(now.Add(signedAhead)) {
		return fmt.Errorf("serial %d is %s, more than %s ahead of the clock, %s: set the clock, and commit anew if the commit has the wrong time",
			e.Serial, at.UTC().Format(time.RFC3339), signedAhead, now.UTC().Format(time.RFC3339))
	}
	return nil
}

// CheckSigned returns an error if the documents of any host have fewer signatures than that host's
// new manifest requires. The host would refuse later documents that are signed in the same way.
func (t SignedTree) CheckSigned() error {
	for _, host := range slices.Sorted(maps.Keys(t)) {
		var by *signers.Set
		for _, d := range t[host] {
			if d.Envelope.Kind == document.DocManifest {
				s := d.Manifest().Trust.Signers()
				by = &s
			}
		}
		for _, d := range t[host] {
			if by == nil {
				s := d.Policy().Trust.Signers() // a policy alone, for the time of a rollout
				by = &s
			}
			if err := d.Verify(*by); err != nil {
				return err
			}
		}
	}
	return nil
}

// Rev returns the revision of the flake from which the documents were compiled. If the documents
// name none or several revisions, Rev returns "".
func (t SignedTree) Rev() (rev string) {
	first := true
	for _, documents := range t {
		for _, d := range documents {
			if !first && d.Envelope.Rev != rev {
				return ""
			}
			first, rev = false, d.Envelope.Rev
		}
	}
	return rev
}

// Digest returns a digest of the tree, of the form sha256-<base64>. It depends on all documents and
// the names of their hosts, but not on signatures.
func (t SignedTree) Digest() string {
	hash := sha256.New()
	for _, host := range slices.Sorted(maps.Keys(t)) {
		var envelopes []string
		for _, d := range t[host] {
			envelope, _, _ := d.Bytes()
			envelopes = append(envelopes, string(envelope))
		}
		slices.Sort(envelopes)
		fmt.Fprintf(hash, "%q\n", append(envelopes, host))
	}
	return "sha256-" + base64.StdEncoding.EncodeToString(hash.Sum(nil))
}

// Head returns the first line of the stream that EncodeStream writes.
func (t SignedTree) Head() Head {
	head := Head{Hosts: len(t)}
	for _, documents := range t {
		for _, d := range documents {
			head.Cluster, head.Serial = d.Envelope.Cluster, d.Envelope.Serial
		}
	}
	return head
}
